"""Write the golden traces: ``python -m tests.golden.make``, from the root of the repository."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests import reference

HERE = Path(__file__).parent
BUDGET = 200


def traces() -> dict[str, dict[str, Any]]:
    """By file, the budget, the strategy's parameters, the samples, and what the reference decides on them."""
    unit = [_uniform(1, 0.0, 1.0), _coin(2, 0.0, 1.0), _uniform(3, 0.4, 0.6), _uniform(4, 0.7, 0.72)]
    starved = [0.0] * 3 + _coin(12, 0.0, 3.0)[3:]
    wide = [_uniform(6, -3.0, 3.0), _uniform(7, 9.0, 13.0), _uniform(8, -0.05, 0.05), starved]
    plain = [_uniform(9, -3.0, 3.0), _uniform(10, 100.0, 102.0), _coin(11, -1.0, 1.0)]
    return {
        "ch_as": _trace(reference.ch_as, unit, delta=None, width=1.0),
        "b_as": _trace(reference.b_as, wide, exploration=0.5),
        "gafs_max": _trace(reference.gafs_max, plain, alpha=1.0),
    }


def _trace(
    strategy: Callable[..., list[int]], samples: list[list[float]], **parameters: float | None
) -> dict[str, Any]:
    decisions = strategy(samples, BUDGET, **parameters)
    return {"budget": BUDGET, "parameters": parameters, "samples": samples, "decisions": decisions}


def _uniform(seed: int, low: float, high: float) -> list[float]:
    """Three decimals, so that the file says exactly what was used."""
    rng = Random(seed)
    return [round(low + (high - low) * rng.random(), 3) for _ in range(BUDGET)]


def _coin(seed: int, low: float, high: float) -> list[float]:
    rng = Random(seed)
    return [high if rng.random() < 0.5 else low for _ in range(BUDGET)]


def main() -> None:
    """Write them all, one arm's samples to a line."""
    for name, trace in traces().items():
        rows = ",\n  ".join(json.dumps(row) for row in trace["samples"])
        (HERE / f"{name}.json").write_text(
            f'{{\n "budget": {trace["budget"]},\n "parameters": {json.dumps(trace["parameters"])},\n'
            f' "samples": [\n  {rows}\n ],\n "decisions": {json.dumps(trace["decisions"])}\n}}\n'
        )


if __name__ == "__main__":
    main()
