"""The paper's experiments on a small scale: what is kept, what is judged, what is written."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.lab import cpu, page, paper
from equipoise.lab.setup import Ends

SMALL = paper.Design(
    runs=256,
    budgets=(50, 100, 200),
    ratios=(2, 5, 20),
    n=200,
    lemma=(50, 100),
    quiet=(100, 300),
    far=(1000, 3000),
    long=(200, 400),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paper")


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[tuple[Any, ...], Any]:
    return paper.measure(SMALL, folder / "simulations")


@pytest.fixture(scope="module")
def tables(results: dict[tuple[Any, ...], Any]) -> paper.Tables:
    return paper.tables(SMALL, results)


class Counter:
    """Counts what is simulated, and interrupts the job after so many."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, jobs: float = math.inf) -> None:
        self.calls = self.jobs = 0
        one, whole = cpu.simulate, eq.simulate

        def count_one(*words: Any) -> Any:
            self.calls += 1
            return one(*words)

        def count_whole(*words: Any, **named: Any) -> Any:
            self.jobs += 1
            if self.jobs > jobs:
                raise KeyboardInterrupt
            return whole(*words, **named)

        monkeypatch.setattr(cpu, "simulate", count_one)
        monkeypatch.setattr(paper, "simulate", count_whole)


def same(one: dict[tuple[Any, ...], Any], other: dict[tuple[Any, ...], Any]) -> bool:
    return json.dumps(paper.tables(SMALL, one)) == json.dumps(paper.tables(SMALL, other))


def test_a_second_call_simulates_nothing(
    folder: Path, results: dict[tuple[Any, ...], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Counter(monkeypatch)
    told: list[Any] = []
    again = paper.measure(SMALL, folder / "simulations", lambda *words: told.append(words))
    assert (counter.calls, counter.jobs) == (0, 0)
    assert told == []
    assert same(again, results)
    assert len(list((folder / "simulations").iterdir())) == len(paper.jobs(SMALL))


def test_an_interrupted_call_goes_on_and_a_broken_file_is_made_again(
    tmp_path: Path, folder: Path, results: dict[tuple[Any, ...], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # All but five of the files are there already, and one of those is broken, one is another's, one of another kind.
    jobs = list(paper.jobs(SMALL).values())
    names = [paper._file(tmp_path, job, SMALL.seed) for job in jobs]
    assert len(set(names)) == len(names)
    for name in names[5:]:
        name.write_bytes((folder / "simulations" / name.name).read_bytes())
    names[-1].write_text("{")
    names[6].write_bytes(names[7].read_bytes())
    names[8].write_text(json.dumps({"format": "equipoise curve 1", "simulations": [{}]}))
    with monkeypatch.context() as patch:
        Counter(patch, jobs=2)
        with pytest.raises(KeyboardInterrupt):
            paper.measure(SMALL, tmp_path)
    assert [name.exists() for name in names[:5]] == [True, True, False, False, False]
    assert not list(tmp_path.glob("*.part"))
    kept = names[0].stat().st_mtime_ns
    told: list[tuple[float, float, str]] = []
    again = paper.measure(SMALL, tmp_path, lambda *words: told.append(words))
    assert names[0].stat().st_mtime_ns == kept
    assert same(again, results)
    done = [share for share, _, _ in told]
    assert done == sorted(done)
    assert done[-1] == told[-1][1]


def test_the_name_of_a_file_follows_all_that_matters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = paper.Job(paper.PAIR, eq.strategies.BAS(exploration=0.5), (50, 100), 200)
    others = [
        (paper.Job(paper.BOUNDED, job.strategy, job.budgets, job.runs), 1),
        (paper.Job(job.problem, eq.strategies.BAS(exploration=1), job.budgets, job.runs), 1),
        (paper.Job(job.problem, job.strategy, (50, 200), job.runs), 1),
        (paper.Job(job.problem, job.strategy, job.budgets, 300), 1),
        (paper.Job(job.problem, job.strategy, job.budgets, job.runs, "controls"), 1),
        (job, 2),
    ]
    files = {paper._file(tmp_path, each, seed) for each, seed in [(job, 1), *others]}
    assert len(files) == len(others) + 1
    monkeypatch.setattr(eq, "__version__", "another")
    assert paper._file(tmp_path, job, 1) not in files


def test_tables_have_every_row(tables: paper.Tables) -> None:
    assert len(tables["left"]) == 9 * 3
    assert len(tables["right"]) == 3 * (4 + 4 + 2 + 2)
    assert len(tables["shape"]) == 2 * 2 * 2
    assert len(tables["remark3"]) == 2 * 4
    assert len(tables["lemma"]) == 2 * 2 * 2 + 4
    assert len(tables["long"]) == 4 * 2 * 2
    assert len(tables["bounds"]) == 8
    row = next(row for row in tables["left"] if row["strategy"] == "CH-AS" and row["n"] == 200)
    assert row["rescaled_regret"] == pytest.approx(10.46, abs=5 * row["rescaled_error"])  # tests/functional has it
    assert row["paper_error"] == pytest.approx(math.sqrt(2) * 5 * math.sqrt(200 / 50_000))


def test_the_first_order_of_b_as() -> None:
    # With A = 0.5 the two indices of N(0, 4), N(0, 1) at a very large n, solved by halving.
    n, few, many = 1e12, 0.0, 1e12
    for _ in range(200):
        T = (few + many) / 2
        ahead = (2 + 1 / math.sqrt(T)) ** 2 / T > (1 + 1 / math.sqrt(n - T)) ** 2 / (n - T)
        few, many = (T, many) if ahead else (few, T)
    assert paper.first_order(paper.PAIR, 0.5) == pytest.approx(n**1.5 * (4 / T - 5 / n), rel=1e-3)


def test_where_the_loss_of_an_arm_comes_from() -> None:
    # Four runs of a Rademacher arm: two starved with 2 pulls, two with 4 pulls and means 0 and 1/2.
    problem = eq.Problem([eq.Gaussian(0, 9), eq.Rademacher()])
    counts, means = np.array([2.0, 2.0, 4.0, 4.0]), np.array([1.0, -1.0, 0.0, 0.5])
    both = [np.stack([values, values])[None] for values in (counts, means, counts * (1 - means**2))]
    found = paper.shape(Ends(*both), problem, 100)
    assert found["starved"] == 0.5
    assert found["starved pulls"] == 2
    assert found["identity"] == pytest.approx(0)
    assert found["correlation given T"] == pytest.approx(-1)
    assert found["excess"] == pytest.approx((1 + 1 + 0 + 0.25) / 4 - 0.1)
    assert found["excess starved"] == pytest.approx(0.45)
    assert found["excess starved"] + found["excess others"] == pytest.approx(found["excess"])
    assert found["gap"] == pytest.approx((0.5 + 0.5 - 0.25 + 0) / 4)
    assert found["gap others"] == pytest.approx(-0.25 / 4)
    assert found["s2 mean 1/T"] == pytest.approx(0.375)


def verdicts(tables: paper.Tables) -> dict[str, bool]:
    return {claim.claim: claim.holds for claim in paper.claims(tables)}


def changed(tables: paper.Tables, table: str, column: str, to: Any, **keys: Any) -> paper.Tables:
    """The tables with one column of some rows set to a number, or to a function of the row."""
    rows = [
        row | {column: to(row) if callable(to) else to} if all(row[k] == v for k, v in keys.items()) else row
        for row in tables[table]
    ]
    assert rows != tables[table]
    return tables | {table: rows}


def test_claims_say_what_was_measured(tables: paper.Tables) -> None:
    claims = paper.claims(tables)
    assert len(claims) == 22
    for claim in claims:
        assert claim.measured
        assert claim.rule
        assert bool(claim.why) != claim.holds
        assert "nan" not in claim.measured
    held = verdicts(tables)
    assert held["The rescaled regret of CH-AS increases with n."]
    assert held["The rescaled regret of B-AS is almost constant in n."]
    assert not held["The rescaled regret of GAFS-MAX is almost constant in n."]
    assert not held["For two Gaussian arms the rescaled regret of B-AS does not depend on 1/λ_min."]


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("CH-AS increases", ("left", "rescaled_regret", 1.0, {"strategy": "CH-AS", "n": 200})),
        ("B-AS is almost constant", ("left", "rescaled_regret", 9.0, {"strategy": "B-AS, A = 0.5", "n": 100})),
        ("GAFS-MAX is almost constant", ("left", "rescaled_regret", 3.0, {"strategy": "GAFS-MAX, α = 1"})),
        ("GAFS-MAX is very close", ("left", "rescaled_regret", 3.05, {"strategy": "GAFS-MAX, α = 1"})),
        ("no further dependence", ("left", "rescaled_regret", 3.3, {"strategy": "B-AS, A = 0.5", "n": 200})),
        ("two Gaussian arms", ("right", "rescaled_regret", 3.0, {"strategy": "B-AS, A = 0.5", "partner": "Gaussian"})),
        (
            "Rademacher arm it increases",
            ("right", "rescaled_regret", -1.0, {"strategy": "B-AS, A = 0.5", "partner": "Rademacher", "ratio": 20}),
        ),
        ("when its mean is accurate", ("shape", "gap others", lambda row: row["gap"], {"partner": "Rademacher"})),
        ("negatively correlated", ("shape", "correlation given T", 0.0, {"partner": "Rademacher"})),
        ("The shape of the laws", ("right", "rescaled_regret", 5.0, {"strategy": "B-AS, A = 1"})),
        ("Any algorithm", ("right", "rescaled_regret", 5.0, {"strategy": paper.AUTO})),
        ("zero variance at least", ("remark3", "pulls", 20.0, {"strategy": "CH-AS"})),
        ("n^(-4/3)", ("remark3", "regret", 1.0, {"strategy": "CH-AS", "n": 300})),
        ("over-pulls it", ("remark3", "pulls", 90.0, {"strategy": "GAFS-MAX, α = 1", "n": 3000})),
        ("n^(-3/2)", ("remark3", "regret_exponent", -1.0, {"strategy": "GAFS-MAX, α = 1", "n": 300})),
        ("loss of a Gaussian arm", ("lemma", "difference", 1.0, {"arm": "N(0, 1)", "n": 50})),
        ("does not carry over", ("lemma", "difference", 0.0, {})),
        ("regret of CH-AS, with", ("bounds", "holds", False, {"statement": "Theorem 1, regret of CH-AS"})),
        ("pulls of B-AS", ("bounds", "holds", False, {"statement": "Lemma 2, fewest pulls of any arm"})),
    ],
)
def test_a_verdict_follows_the_numbers(tables: paper.Tables, claim: str, change: Any) -> None:
    table, column, to, keys = change
    before, after = verdicts(tables), verdicts(changed(tables, table, column, to, **keys))
    [name] = [name for name in before if claim in name]
    assert before[name] != after[name]


def test_what_is_written(folder: Path, tables: paper.Tables) -> None:
    claims = paper.claims(tables)
    files = page.write(folder, SMALL, tables, claims, paper.figures(tables))
    assert files[0] == folder / "index.html"
    names = {path.name for path in files}
    assert {f"{name}.{kind}" for name in ("left", "right", "remark3", "open") for kind in ("png", "svg")} <= names
    assert {f"{name}.csv" for name in (*tables, "claims")} <= names
    for path in files:
        assert path.stat().st_size > (300 if path.suffix == ".csv" else 5000), path
    with (folder / "left.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["rescaled_regret"]) for row in rows] == [row["rescaled_regret"] for row in tables["left"]]
    text = files[0].read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml;base64,") == 4
    assert "http" not in text  # nothing is fetched
    assert text.count("does not hold</span>") == sum(not claim.holds for claim in claims)
    for heading, _ in page.TEXTS.values():
        assert heading in text.replace("&#x27;", "'")


def test_a_design_is_checked() -> None:
    with pytest.raises(ValueError, match="runs=5 will not do"):
        paper.Design(runs=5)
    with pytest.raises(TypeError, match="runs"):
        paper.Design(runs=1e4)  # type: ignore[arg-type]


def test_numbers_with_errors() -> None:
    assert paper.plus_minus(3.14159, 0.012) == "3.14 ± 0.01"
    assert paper.plus_minus(2716.4, 39.2) == "2716 ± 39"
    assert paper.plus_minus(6.38e-5, 7e-9) == "6.38e-05 ± 7e-09"
    assert paper.plus_minus(33.0, 0.0) == "33"
