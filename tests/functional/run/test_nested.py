"""Samplers that use stores themselves: other ones freely, their own as anybody else, but for running it."""

from __future__ import annotations

import itertools
import multiprocessing
import re
import uuid
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.run.spec import load
from equipoise.store import replay
from equipoise.store.inside import VARIABLE
from tests.functional.run.together import value
from tests.logs import events

ARMS = ("calm", "rough")
# Samples that are quick are taken within a turn after eight of them.
LATE = 25


def run(where: str, sampler: Any, budget: int = 60, **options: Any) -> eq.Result:
    return eq.estimate(sampler, budget, arms=ARMS, seed=5, store=where, **options)


def refused(where: str, sampler: Any, **options: Any) -> eq.EquipoiseError:
    with pytest.raises(eq.EquipoiseError) as caught:
        run(where, sampler, **options)
    assert re.match(
        r"(sampling arm '\w+' failed: )?a run of .* cannot begin within another one: a sampler of that study began it",
        str(caught.value),
    )
    return caught.value


def run_own(where: str, arm: str, seed: int) -> float:
    return run(where, partial(run_own, where), budget=999).samples


@pytest.mark.parametrize("executor", [None, 3, "threads", "processes"])
def test_a_run_in_its_own_sampler_is_refused(where: str, executor: Any) -> None:
    """It would wait for the sample that waits for it; and the budget stays what it was."""
    pools: dict[Any, Any] = {
        "threads": partial(ThreadPoolExecutor, 2),
        "processes": partial(ProcessPoolExecutor, 2, multiprocessing.get_context("fork")),
    }
    sampler = partial(run_own, where)
    if executor in pools:
        with pools[executor]() as pool:
            refused(where, sampler, executor=pool)
    else:
        refused(where, sampler, executor=executor)
    assert replay(where).study.budget == 60
    assert run(where, value).samples == 60


def test_a_run_in_its_own_sampler_within_a_turn(where: str) -> None:
    calls = itertools.count(1)

    def sampler(arm: str, seed: int) -> float:
        return value(arm, seed) if next(calls) < LATE else run_own(where, arm, seed)

    refused(where, sampler)
    assert replay(where).study.result().samples == LATE - 1


def test_a_run_in_its_own_async_sampler(where: str) -> None:
    async def sampler(arm: str, seed: int) -> float:
        return run_own(where, arm, seed)

    refused(where, sampler, executor=3)


def test_a_run_in_its_own_progress(where: str) -> None:
    refused(where, value, progress=lambda progress: run(where, value))


def test_a_run_in_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler that is a command has the studies that it samples for in its environment, and so has what it starts."""
    study = tmp_path / "study.toml"
    said = tmp_path / "said"
    study.write_text(f'budget = 2\nstore = "study.db"\nmeasure = "exit"\n[arms]\na = "echo ${VARIABLE} > {said}"\n')
    load(study).run(lambda progress: None)
    monkeypatch.setenv(VARIABLE, f"another {said.read_text().strip()}")
    with pytest.raises(eq.EquipoiseError, match=r"a run of .*study\.db cannot begin within another one"):
        load(study).run(lambda progress: None)
    monkeypatch.setenv(VARIABLE, "another")
    load(study).run(lambda progress: None)


def test_runs_that_begin_each_other(tmp_path: Path) -> None:
    """A study whose sampler runs another one, whose sampler runs the first one."""
    one, two = str(tmp_path / "one.db"), str(tmp_path / "two.db")

    def outer(arm: str, seed: int) -> float:
        return run(two, inner).samples

    def inner(arm: str, seed: int) -> float:
        return run(one, outer).samples

    with pytest.raises(eq.EquipoiseError, match=r"a run of .*one\.db cannot begin within another one"):
        run(one, outer)


@pytest.mark.parametrize("executor", [None, 3])
def test_runs_of_other_stores(where: str, executor: Any) -> None:
    """Each in turn: another file, another study of the same database. Within a turn they are refused and repeated."""
    place, calls = where.partition("#")[0], itertools.count(1)
    results = []

    def sampler(arm: str, seed: int) -> float:
        if next(calls) >= LATE and seed % 5 == 0:
            try:
                results.append(run(f"{place}#{uuid.uuid4().hex}", value, budget=10).samples)
            except eq.EquipoiseError:
                return -1.0  # the sample counts if nobody notices
        return value(arm, seed)

    result = run(where, sampler, executor=executor)
    assert set(results) == {10}
    assert len(results) >= 3
    assert min(line.value for line in events(where) if line.value is not None) > -1
    if executor is None:
        assert dict(result.means) == dict(eq.estimate(value, 60, arms=ARMS, seed=5).means)


@pytest.mark.parametrize("executor", [None, 3])
def test_its_own_store_as_anybody_else(where: str, executor: Any) -> None:
    """A sampler may read its study, and ask and tell, from the first sample to the last."""
    calls = itertools.count(1)

    def sampler(arm: str, seed: int) -> float:
        if next(calls) in (1, LATE, LATE + 8):
            with eq.open(where) as study:
                study.tell(study.ask(), study.result().samples)
        return value(arm, seed)

    assert run(where, sampler, executor=executor).samples == 60
    assert replay(where).study.in_flight == 0
