"""
What `equipoise.compiled` relies on inside Numba, place by place, so that a new Numba fails here and nowhere else.

pyproject.toml bounds Numba's version; raising the bound begins with this file.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import bytecode, caching, codegen, compiler, registry, serialize, sigutils
from numba.np import arrayobj

from equipoise import compiled
from equipoise.compiled import jit
from equipoise.compiled.library import Library, Part

SOURCE = Path(compiled.__file__).parents[1]
# What of Numba everyone may use.
PUBLIC = {"numba", "numba.extending", "numba.types", "numba.cuda"}


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile here, as code from disk is in other libraries."""
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path))


def half(x: float) -> float:
    return x / 2


def both(x: float, y: float) -> Any:
    return inner(x) + inner(y)


inner: Any = jit(half)


def test_functions_are_numbered_by_an_iterator_of_the_class() -> None:
    """`compiler._number_anew` replaces it, so that names of functions from disk do not meet others."""
    before = bytecode.FunctionIdentity._unique_ids
    assert bytecode.FunctionIdentity.from_function(half).unique_id < next(before)


def test_contexts_can_be_refreshed() -> None:
    for context in (registry.cpu_target.typing_context, registry.cpu_target.target_context):
        context.refresh()


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (codegen.JITCodeLibrary, vars(Library).keys() | vars(Part).keys()),
        (caching._Cache, {"load_overload", "save_overload", "enable", "disable", "flush", "cache_path"}),
        (compiler.Compiler, {"compile_extra"}),
        (compiler.CompileResult, {"_rebuild", "_reduce", "_replace"}),
        (serialize, {"dumps"}),
        (sigutils, {"normalize_signature"}),
        (arrayobj, {"populate_array"}),
    ],
    ids=["JITCodeLibrary", "_Cache", "Compiler", "CompileResult", "serialize", "sigutils", "arrayobj"],
)
def test_what_is_overridden_or_called_is_there(owner: Any, names: set[str]) -> None:
    own = {"has_loops", "read", "codegen"}  # ours, and an attribute of each library
    assert [name for name in sorted(names - own) if not name.startswith("__") and not hasattr(owner, name)] == []


def test_a_library_has_what_parts_need() -> None:
    names = {"_finalize_dynamic_globals", "_verify_declare_only_symbols", "_ensure_finalized", "enable_object_caching"}
    assert all(hasattr(codegen.JITCodeLibrary, name) for name in names)
    of_target = registry.cpu_target.target_context.codegen()
    assert of_target._data_layout
    assert len(of_target._function_pass_manager()) == 2
    assert callable(of_target.set_env)
    assert of_target.magic_tuple()


def test_a_pass_takes_the_library_that_the_compiler_was_given() -> None:
    inner(3.0)
    (result,) = numba_overloads(inner)
    assert type(result.library) is Library
    assert not result.library.has_dynamic_globals
    assert result.lifted == ()
    assert result.library.get_pointer_to_function(result.fndesc.llvm_func_name) > 0


def test_callers_find_a_part_by_the_template_and_the_overload() -> None:
    """`jit.compiled` gives a dispatcher those of its part."""
    outer = jit(both)
    assert outer(1.0, 4.0) == 2.5
    (part,) = numba_overloads(inner.part)
    assert type(part.library) is Part
    assert part.library.serialize_using_object_code()[1][:2] == b"BC"  # bitcode, not machine code


def test_a_dispatcher_asks_its_cache() -> None:
    source = inspect.getsource(type(inner).compile)
    assert "self._cache.load_overload(" in source
    assert "self._cache.save_overload(" in source


def test_options_that_are_not_documented_are_known() -> None:
    options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, "forceinline": True, "_nrt": False}
    numba.njit(error_model="numpy", **options)(half).compile((numba.float64,))


def test_a_plain_function_is_called_by_its_type() -> None:
    """`callable_compiled` gives it the type of the dispatcher."""
    named: Any = compiled.callable_compiled(lambda x: x + 1.0)
    outer: Any = jit(lambda x: named(x) * 2.0)
    assert outer(np.float64(1.0)) == 4.0


def test_flags_that_change_code_are_there() -> None:
    from equipoise.compiled.cache import _FLAGS

    missing = [flag for flag in _FLAGS if not hasattr(numba.config, flag)]
    assert set(missing) <= {"USING_SVML"}  # only where Intel's library is


def numba_overloads(dispatcher: Any) -> list[Any]:
    return list(dispatcher.overloads.values())


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE / "compiled"],
    ids=lambda path: path.relative_to(SOURCE).as_posix(),
)
def test_nothing_else_knows_the_inside_of_numba(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
            assert node.module in PUBLIC, f"{path}:{node.lineno}: import {node.module} in equipoise.compiled"
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.name.split(".")[0] != "numba" or alias.name in PUBLIC, f"{path}:{node.lineno}"
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("_cache", "_type", "nopython_signatures", "targetoptions"), f"{path}:{node.lineno}"
