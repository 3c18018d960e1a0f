"""The package as it is imported: quickly, with nothing that is not asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import equipoise as eq
from benchmarks import cold
from equipoise import planning


def loaded_after(code: str) -> set[str]:
    """Return the packages that a new process has loaded after running this code."""
    listing = "import sys; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{listing}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_an_import_loads_what_is_used() -> None:
    assert not {"numpy", "numba", "rich"} & loaded_after("import equipoise")
    assert "numba" not in loaded_after("import equipoise as eq; eq.EquipoiseError")
    assert "numba" in loaded_after("import equipoise as eq; eq.Study")


def test_help_does_not_load_the_compiler() -> None:
    helped = (
        "import sys; from equipoise.cli import main; sys.argv[1:] = ['--help']\ntry: main()\nexcept SystemExit: pass"
    )
    assert "numba" not in loaded_after(helped)


def test_every_name_is_there() -> None:
    for name in eq.__all__:
        assert getattr(eq, name) is not None
    assert dir(eq) == sorted([*eq.__all__, "__version__"])
    assert eq.plan is planning.plan
    names: dict[str, object] = {}
    exec("from equipoise import *", names)
    assert set(eq.__all__) <= names.keys()
    with pytest.raises(AttributeError, match="module 'equipoise' has no attribute 'studdy'"):
        eq.studdy  # noqa: B018


def test_a_first_study_compiles_little() -> None:
    """From an empty cache to a printed result; it was 153 functions when each was compiled for Python too."""
    compiled = [name for name, _ in cold.compiled(cold.STUDY)]
    assert 20 < len(compiled) <= 80
    # The steps of asking one by one, a strategy by address; no kernel that has the strategy in it.
    assert {"ask_one", "tell_one", "_simulate"} <= set(compiled)
    assert not {"ask", "tell_many", "choose_many", "update_by_index"} & set(compiled)
