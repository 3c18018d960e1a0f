"""What a first simulation compiles in a fork."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.compiled import fork
from equipoise.engine import cpu, streams
from equipoise.engine import precompile as ahead
from equipoise.engine.kernels.lanes import strategy_parts
from equipoise.engine.setup import Setup
from equipoise.strategies import Strategy


class Mean(Strategy):
    """The variance, half of it that of all arms."""

    sums = ("total",)
    pooled = ("mean",)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Any, own: Any, params: Any) -> float:
        return float(m2 / count + pooled[0]) / 2

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Any, own: Any, params: Any) -> Any:
        return (m2 / count,)

    @staticmethod
    def pool(sums: Any, arms: float, pooled: Any, params: Any) -> Any:
        return (sums[0] / arms,)


def setup(arms: int = 2, in_flight: int = 1) -> Setup:
    return Setup(eq.Problem([eq.Gaussian(0, 1)] * arms), Mean(), (8 * arms,), (), 1, in_flight)


@pytest.mark.parametrize("arms", [2, 8])
def test_the_parts_are_those_that_the_kernel_has(arms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an empty cache: compiling the kernel after its parts compiles none of these for other types."""
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path))
    run: Any = cpu.kernel(setup(arms)).run
    parts = strategy_parts(run.py_func, 1)
    assert len(parts) == 2
    for part, signature in parts:
        part.compile(signature)
    cpu.simulate(setup(arms), 0, 2)
    for part, signature in parts:
        assert list(part.overloads) == [signature]
    assert len(run.overloads) == 1


@pytest.fixture
def forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be done in a fork, where nothing is compiled yet; samples are not drawn either."""
    found: list[Any] = []
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(fork, "possible", lambda: True)
    monkeypatch.setattr(fork, "begin", found.append)
    monkeypatch.setattr(streams, "_fill_address", lambda kind, drawn: 0)
    return found


def test_there_is_a_fork_where_nothing_is_compiled(forks: list[Any], tmp_path: Path) -> None:
    ahead.compile_ahead(setup())
    assert len(forks) == 1
    (tmp_path / "cache" / "some.nbc").touch()
    ahead.compile_ahead(setup())
    assert len(forks) == 1


def test_runs_one_by_one_and_very_many_arms_need_no_fork(forks: list[Any]) -> None:
    ahead.compile_ahead(setup(in_flight=2))
    ahead.compile_ahead(setup(arms=cpu.TUNING.many + 1))
    assert not forks


def test_a_fork_compiles_the_strategy(forks: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    class Part:
        def compile(self, signature: Any) -> None:
            compiled.append(signature)

    monkeypatch.setattr(ahead, "check_compiles", lambda strategy, params: compiled.append(strategy))
    monkeypatch.setattr(ahead, "strategy_parts", lambda run, params: [(Part(), "types")])
    ahead.compile_ahead(setup())
    [work] = forks
    work()
    assert [type(each) for each in compiled] == [Mean, str]
