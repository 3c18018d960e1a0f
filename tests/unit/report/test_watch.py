"""A log that is folded bit by bit gives the same report as one that is folded at once."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import report
from equipoise.report.drift import BLOCKS, Drifts
from equipoise.report.history import SPAN, SPANS, STEP, RecentPace
from equipoise.report.watch import AGAIN
from equipoise.store import Log
from equipoise.store.database import Row
from equipoise.store.events import Draft


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """The turns of a study: asked and answered in batches, some late, some declined, some forgotten."""
    where = tmp_path_factory.mktemp("watch") / "study.db"
    chance = random.Random(1)
    study = eq.open(where, arms=["a", "b", "c"], budget=900, precision=0.5)
    waiting: list[Any] = []
    while not study.done:
        waiting += study.ask(chance.randint(1, 20))
        chance.shuffle(waiting)
        for _ in range(chance.randint(1, len(waiting))):
            ticket = waiting.pop()
            what = chance.random()
            if what < 0.03:
                study.decline(ticket)
            elif what < 0.06:
                study.forget(ticket)
            else:
                study.tell(ticket, chance.gauss(0, "abc".index(ticket.arm) + 1))
    study.close()
    with Log(where, write=False) as log:
        return [row for page in log.pages() for row in page]


def folded(rows: list[Row], sizes: Any) -> report.Watch:
    watch = report.Watch(rows[0])
    done = 1
    while done < len(rows):
        step = next(sizes)
        watch.fold(rows[done : done + step])
        watch.report("looked at in between")
        done += step
    return watch


def test_bit_by_bit_is_as_at_once(rows: list[Row]) -> None:
    chance = random.Random(2)
    once = folded(rows, iter([len(rows)])).report("study")
    bits = folded(rows, iter(lambda: chance.randint(1, 40), 0)).report("study")
    assert len(once.history) > 20
    # A moment whenever the samples have grown by a factor, and one for the end.
    samples = [moment.samples for moment in once.history]
    for before, after in itertools.pairwise(samples[:-1]):
        assert after == max(before + 1, math.ceil(before * STEP))
    assert samples[-1] == once.result.samples
    assert [moment.samples for moment in bits.history] == [moment.samples for moment in once.history]
    for one, other in zip(once.history, bits.history, strict=True):
        assert one.widest == other.widest
        assert one.arms is not None
        assert other.arms is not None
        assert one.arms.tolist() == other.arms.tolist()
    for a, b in zip(once.drifts, bits.drifts, strict=True):
        assert (a.place, a.size) == (b.place, b.size)
        assert a.score == pytest.approx(b.score, rel=1e-9)
        assert a.means.tolist() == pytest.approx(b.means.tolist(), rel=1e-9)
    assert once.pace.per_second(once.began, once.latest) == bits.pace.per_second(bits.began, bits.latest)
    # What takes a replay may be as old as that.
    assert bits.account.samples >= bits.result.samples / AGAIN
    skip = {"account", "table", "arms"}
    views = [report.view(each) for each in (once, bits)]
    for name in views[0].keys() - skip:
        assert views[0][name] == views[1][name]


def test_drift_is_that_of_each_arms_samples_in_the_order_of_asking(rows: list[Row]) -> None:
    watch = folded(rows, iter([len(rows)]))
    evidence = watch.result().known.snapshot.evidence
    assert evidence is not None
    samples = evidence.samples()
    assert samples is not None
    for drift, own in zip(watch.report("study").drifts, samples, strict=True):
        n = len(own)
        ratio = np.square(np.diff(own)).sum() / np.square(own - own.mean()).sum()
        assert drift.score == pytest.approx((2 - ratio) / np.sqrt(4 * (n - 2) / (n * n - 1)))
        assert BLOCKS // 2 <= len(drift.means) < BLOCKS
        blocks = own[: len(drift.means) * drift.size].reshape(-1, drift.size)
        assert drift.means.tolist() == pytest.approx(blocks.mean(axis=1).tolist())


def test_few_samples_say_nothing_of_drift() -> None:
    result = eq.estimate({"a": range(19), "b": [1] * 50, "c": range(20)})
    few, equal, rising = Drifts(3).look(result)
    assert np.isnan([few.score, equal.score]).all()
    assert not few.drifts
    assert rising.drifts


def test_another_level_needs_another_watch(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    chance = random.Random(3)

    def sample(arm: str) -> float:
        return chance.gauss(0, 1)

    for level in (0.95, 0.8):
        eq.estimate(sample, 200, arms=["a", "b"], store=where, precision=0.05, level=level)
    with Log(where, write=False) as log:
        first, *rest = (row for page in log.pages() for row in page)
    watch = report.Watch(first)
    watch.fold(rest)
    assert watch.stale
    again = report.Watch(first, watch.replica.level)
    again.fold(rest)
    assert not again.stale
    assert again.report("study").history[-1].widest < watch.report("study").history[-2].widest


def row(at: float, told: int) -> Row:
    draft = Draft()
    draft.asked([0] * told)
    draft.told_many(range(told), [0.0] * told, [0.0] * told)
    return Row(1, b"", at, draft.pack(), b"")


def test_the_pace_is_that_of_the_last_minutes() -> None:
    """By hand: 10 samples every 10 seconds for an hour, 20 in the last five minutes."""
    pace = RecentPace()
    began, end = 1000.0, 4600.0
    for at in np.arange(began, end, SPAN):
        pace.add([row(at, 20 if at >= end - SPAN * SPANS else 10)])
    assert pace.per_second(began, end) == pytest.approx(2.0)
    assert len(pace._told) == SPANS
    # Where nothing comes any more, it falls; and before anything came, it is not known.
    assert pace.per_second(began, end + SPAN * SPANS / 2) == pytest.approx(1.0, rel=0.1)
    assert pace.per_second(began, end + 2 * SPAN * SPANS) == 0
    assert np.isnan(pace.per_second(float("nan"), end))
    young = RecentPace()
    young.add([row(0.0, 30)])
    assert young.per_second(0.0, 60.0) == 0.5
    assert young.per_second(0.0, 0.5) == 60
