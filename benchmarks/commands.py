"""
Time real commands with `equipoise run`, and see whether others find the same.

Three compressors, as whole processes, each to 10% of its mean; then their medians by hyperfine where it is installed,
else by runs in turn. Run it with `python benchmarks/commands.py` on an idle machine. The last line is one JSON object.
It fails where the precision is not reached or the two orders differ; the levels are such that times differ by half or
more.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMPRESSORS = {"zlib": "data, 1", "bz2": "data", "lzma": "data, preset=3"}
REPEATS = 5


def ours(commands: dict[str, str], folder: Path) -> dict[str, Any]:
    """What `equipoise run` finds, within 300 runs."""
    lines = "".join(f"{name} = {json.dumps(command)}\n" for name, command in commands.items())
    study = folder / "study.toml"
    study.write_text(f'budget = 300\nprecision = "10%"\nmeasure = "seconds"\nwarmup = 1\n[arms]\n{lines}')
    words = [sys.executable, "-m", "equipoise", "run", str(study), "--jobs", "1", "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(words, capture_output=True, text=True).stdout)
    return found


def theirs(commands: dict[str, str], folder: Path) -> dict[str, float]:
    """Median seconds: hyperfine's where it is there, else of runs in turn."""
    if shutil.which("hyperfine"):
        found = folder / "hyperfine.json"
        words = ["hyperfine", "--warmup", "1", "--runs", str(REPEATS), "--export-json", str(found), *commands.values()]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        results = json.loads(found.read_text())["results"]
        return {name: each["median"] for name, each in zip(commands, results, strict=True)}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(REPEATS):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, shell=True, cwd=folder, check=True)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def main() -> None:
    rng = random.Random(1)
    words = [bytes(rng.choices(range(97, 123), k=rng.randint(2, 9))) for _ in range(500)]
    run = "{} -I -c \"import {}; data = open('data.txt', 'rb').read(); {}.compress({})\""
    commands = {name: run.format(sys.executable, name, name, given) for name, given in COMPRESSORS.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.txt").write_bytes(b" ".join(rng.choices(words, k=120_000)))
        found, medians = ours(commands, folder), theirs(commands, folder)
    means = found["means"]
    same = sorted(means, key=means.__getitem__) == sorted(medians, key=medians.__getitem__)
    report = {
        "samples": found["samples"],
        "means": means,
        "medians": medians,
        "same_order": same,
        "precision_reached": found["precision_reached"],
    }
    for key, value in report.items():
        print(key, value)
    print(json.dumps(report))
    sys.exit(int(not (same and found["precision_reached"])))


if __name__ == "__main__":
    main()
