"""The intervals of `EarlyStopping` hold, although wrong answers take longer than right ones."""

from __future__ import annotations

import asyncio
import math
import random
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.scorer import SampleScore, Score

from equipoise.integrations import inspect as eq_inspect
from tests.unit.integrations.inspect.questions import eval_spec

RUNS = 8
RIGHT = {"a": 0.9, "b": 0.5}
SIZE = 120
# A wrong answer comes when this many later ones are being waited for.
SLOW = 40


async def holds(seed: int) -> bool:
    """Whether the intervals hold when the last sample has been scheduled, and when all scores are in."""
    rng = random.Random(seed)
    samples = [Sample(input="", id=f"{g} {i}", metadata={"group": g}) for g in RIGHT for i in range(SIZE)]
    right = {each.id: rng.random() < RIGHT[each.metadata["group"]] for each in samples}
    rng.shuffle(samples)
    stopping = eq_inspect.EarlyStopping("group", 0.12, support="binary")
    await stopping.start_task(eval_spec(), samples, 1)

    async def complete(id: Any) -> None:
        await stopping.complete_sample(id, 1, {"includes": SampleScore(score=Score(value=int(right[id])))})

    def true() -> bool:
        intervals = stopping.result().intervals()
        means = {g: sum(right[f"{g} {i}"] for i in range(SIZE)) / SIZE for g in RIGHT}
        return all(low - 1e-9 <= means[str(g)] <= high + 1e-9 for g, (low, high) in intervals.items())

    running: list[Any] = []
    for each in samples:
        if await stopping.schedule_sample(each.id, 1) is None:
            if right[each.id]:
                await complete(each.id)
            else:
                running.append(each.id)
        if len(running) > SLOW:
            await complete(running.pop(0))
    found = true()
    for id in running:
        await complete(id)
    return found and true()


def test_the_intervals_of_early_stopping_hold() -> None:
    """Scores taken as they come, the right ones first, would make none of these runs true."""
    held = sum(asyncio.run(holds(seed)) for seed in range(RUNS)) / RUNS
    assert held >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / RUNS)
