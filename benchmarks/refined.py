"""
Measure whether intervals hold after a finer precision was asked for, always or because of what the first result says.

    python -m benchmarks.refined [--studies N] [--jobs J]

Each study samples one Gaussian arm of mean 0 and standard deviation 1 to ±0.2, and then to ±0.1: always, or only if the
first interval contains 0. Prints a table of docs/explanation/inference.md; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import equipoise as eq

SEED: Final = 3
FIRST, FINER = 0.2, 0.1


def study(number: int, interval: Any, looks: bool) -> tuple[bool, int]:
    """Return whether the last interval of a study contains the mean, and how many samples it took."""
    rng = np.random.default_rng([number, SEED])

    def sample(arm: str, size: int) -> Any:
        return rng.normal(0, 1, size)

    with tempfile.TemporaryDirectory() as folder:
        known = partial(eq.estimate, sample, arms=["arm"], interval=interval, seed=1, store=Path(folder) / "study.db")
        result = known(precision=FIRST)
        if not looks or holds(result):
            result = known(precision=FINER)
    return holds(result), result.samples


def holds(result: eq.Result) -> bool:
    """Whether the interval of the arm contains its mean."""
    low, high = result.intervals()["arm"]
    return low <= 0 <= high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    rows = []
    print("| interval | a finer precision | coverage | samples |\n|---|---|--:|--:|")
    with ProcessPoolExecutor(options.jobs) as pool:
        for interval in ("fixed-width", "anytime"):
            for looks in (False, True):
                one = partial(study, interval=interval, looks=looks)
                found = np.array(list(pool.map(one, range(options.studies), chunksize=20)), dtype=float)
                held, samples = found.mean(axis=0)
                error = float(np.sqrt(held * (1 - held) / options.studies))
                when = "if 0 is in the first interval" if looks else "always"
                print(f"| `{interval}` | {when} | {held:.1%} ({100 * error:.1f}) | {samples:.0f} |", flush=True)
                rows.append({"interval": interval, "looks": looks, "held": held, "error": error, "samples": samples})
    print(json.dumps({"studies": options.studies, "rows": rows}))


if __name__ == "__main__":
    main()
