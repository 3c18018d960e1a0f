"""Records in flat arrays of words, viewed inside compiled code."""

from __future__ import annotations

from typing import Any

import numba
from numba.extending import intrinsic
from numba.np import arrayobj


@intrinsic
def records(typing: Any, memory: Any, first: Any, count: Any, record: Any) -> Any:
    """View `count` records in a flat array of words, from the word `first` on: nearly free inside a kernel."""
    array = numba.types.Array(record.dtype, 1, "C")

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = context.get_constant(numba.types.intp, record.dtype.size)
        return _view(context, builder, signature, args[0], args[1], args[2], size)

    return array(memory, numba.types.intp, numba.types.intp, record), code


@intrinsic
def spaced_records(typing: Any, memory: Any, first: Any, count: Any, words: Any, record: Any) -> Any:
    """View `count` records that begin `words` words after one another, with other numbers in between."""
    array = numba.types.Array(record.dtype, 1, "A")

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = builder.mul(args[3], context.get_constant(numba.types.intp, 8))
        return _view(context, builder, signature, args[0], args[1], args[2], size)

    return array(memory, *[numba.types.intp] * 3, record), code


def _view(context: Any, builder: Any, signature: Any, memory: Any, first: Any, count: Any, stride: Any) -> Any:
    """Write out the view of a flat array of words as records at this stride in bytes, inside an intrinsic."""
    words = context.make_array(signature.args[0])(context, builder, memory)
    found = context.make_array(signature.return_type)(context, builder)
    size = context.get_constant(numba.types.intp, signature.return_type.dtype.size)
    data = builder.bitcast(builder.gep(words.data, [first]), found.data.type)
    arrayobj.populate_array(found, data, [count], [stride], size, words.meminfo)
    return found._getvalue()
