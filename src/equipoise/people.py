"""Whether a person waits for what a program prints."""

from __future__ import annotations

import sys


def watched() -> bool:
    """Return whether a person waits for the output: in a terminal, or in a notebook."""
    return sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config
