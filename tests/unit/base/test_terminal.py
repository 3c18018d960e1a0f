"""Who waits: a terminal, a notebook, or nobody."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from equipoise.base import terminal as people


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ipython(shell: Any) -> Any:
    return SimpleNamespace(get_ipython=lambda: shell)


def test_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not people.watched()
    monkeypatch.setattr(sys, "stderr", None)
    assert not people.watched()
    # IPython that was only imported, and IPython in a pipe rather than in a kernel.
    for shell in (None, SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "IPython", ipython(shell))
        assert not people.watched()


def test_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert people.watched()
    assert not people.notebook()


def test_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "IPython", ipython(SimpleNamespace(kernel=object())))
    assert people.watched()
    assert not people.terminal()
