"""Whether a person waits for the output, and where: at a terminal or in a notebook."""

from __future__ import annotations

import sys
from typing import Any


def watched() -> bool:
    """Whether a person waits for the output: a terminal or a notebook."""
    return terminal() or notebook()


def terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()  # None without a console, as under pythonw


def notebook() -> bool:
    """Whether this process is the kernel of a Jupyter notebook."""
    # A kernel has imported IPython long before; importing it here would cost everybody else half a second.
    get_ipython: Any = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_ipython() if callable(get_ipython) else None
    return getattr(shell, "kernel", None) is not None
