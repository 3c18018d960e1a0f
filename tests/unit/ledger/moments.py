"""Results that are made of moments alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

import equipoise as eq
from equipoise.base.inputs import Names
from equipoise.inference.known import Known
from equipoise.ledger import Goal, Snapshot
from equipoise.problem import Objective


def result_of_moments(
    counts: Sequence[int],
    variances: Sequence[float],
    means: Sequence[float] | None = None,
    goal: Goal | None = None,
    populations: Sequence[float] | None = None,
) -> eq.Result:
    """Return the result of arms called arm 0, arm 1, ... with these moments; means are 1 by default."""
    n = np.array(counts)
    snapshot = Snapshot(
        names=Names.of([f"arm {k}" for k in range(len(counts))]),
        strategy="",
        support=None,
        objective=Objective(),
        counts=n,
        means=np.array(means or [1.0] * len(counts)),
        m2s=np.array(variances) * np.maximum(n - 1, 0),
        spent=int(n.sum()),
        bill=int(n.sum()),
    )
    found = eq.Result(Known(snapshot, goal or Goal()))
    return found if populations is None else of_populations(found, populations)


def of_populations(result: eq.Result, sizes: npt.ArrayLike) -> eq.Result:
    """Return the result of the same samples, drawn without replacement from populations of these sizes."""
    return eq.Result(Known(replace(result.known.snapshot, populations=np.array(sizes, dtype=float)), result.known.goal))
