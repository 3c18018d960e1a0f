"""The paper's experiments on a small scale: what is kept, what is judged, what is written."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.engine import cpu
from equipoise.engine.setup import Ends
from equipoise.lab import paper
from equipoise.lab.paper import claims, figures, measure, page
from equipoise.lab.paper import tables as rows_of
from equipoise.lab.paper.design import AUTO, BOUNDED, PAIR, CurveJob, StatisticsJob, jobs
from equipoise.lab.paper.measure import Results, file_name
from equipoise.lab.paper.tables import Tables
from equipoise.simulation import blocks, estimators
from equipoise.simulation.simulator import setups
from equipoise.strategies import Numbers

SMALL = paper.PaperDesign(
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
def results(folder: Path) -> Results:
    return measure.measure_all(SMALL, folder / "simulations")


@pytest.fixture(scope="module")
def tables(results: Results) -> Tables:
    return rows_of.build(SMALL, results)


class Counter:
    """Counts what is simulated, and interrupts the job after so many."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, jobs: float = math.inf) -> None:
        self.calls = self.jobs = 0
        one, whole = cpu.simulate, eq.simulate_budgets

        def count_one(*given: Any) -> Any:
            self.calls += 1
            return one(*given)

        def count_whole(*given: Any, **named: Any) -> Any:
            self.jobs += 1
            if self.jobs > jobs:
                raise KeyboardInterrupt
            return whole(*given, **named)

        monkeypatch.setattr(cpu, "simulate", count_one)
        monkeypatch.setattr(measure, "simulate_budgets", count_whole)


def same(one: Results, other: Results) -> bool:
    return json.dumps(rows_of.build(SMALL, one)) == json.dumps(rows_of.build(SMALL, other))


def test_a_second_call_simulates_nothing(folder: Path, results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter(monkeypatch)
    told: list[Any] = []
    second = measure.measure_all(SMALL, folder / "simulations", lambda *now: told.append(now))
    assert (counter.calls, counter.jobs) == (0, 0)
    assert told == []
    assert same(second, results)
    assert len(list((folder / "simulations").iterdir())) == len(jobs(SMALL))


def test_an_interrupted_call_goes_on_and_a_broken_file_is_made_again(
    tmp_path: Path, folder: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All but five of the files are there already, and one of those is broken, one is another's, one of another kind.
    names = [tmp_path / file_name(job, SMALL.seed) for job in jobs(SMALL).values()]
    assert len(set(names)) == len(names)
    for name in names[5:]:
        name.write_bytes((folder / "simulations" / name.name).read_bytes())
    names[-1].write_text("{")
    names[6].write_bytes(names[7].read_bytes())
    names[8].write_text(json.dumps({"format": "equipoise curve 1", "simulations": [{}]}))
    with monkeypatch.context() as patch:
        patch.setattr(measure, "_CORES", 1)
        Counter(patch, jobs=2)
        with pytest.raises(KeyboardInterrupt):
            measure.measure_all(SMALL, tmp_path)
    assert [name.exists() for name in names[:5]] == [True, True, False, False, False]
    assert not list(tmp_path.glob("*.part"))
    kept = names[0].stat().st_mtime_ns
    told: list[tuple[float, float, str]] = []
    second = measure.measure_all(SMALL, tmp_path, lambda *now: told.append(now))
    assert names[0].stat().st_mtime_ns == kept
    assert same(second, results)
    done = [share for share, _, _ in told]
    assert done == sorted(done)
    assert done[-1] == told[-1][1]


JOB = CurveJob(PAIR, eq.strategies.BAS(exploration=0.5), (50, 100), 200)
STATISTICS = StatisticsJob("pulls", PAIR, JOB.strategy, 100, 200)


def test_the_name_of_a_file_follows_the_question() -> None:
    others: list[tuple[CurveJob | StatisticsJob, int]] = [
        (replace(JOB, problem=BOUNDED), 1),
        (replace(JOB, strategy=eq.strategies.BAS(exploration=1)), 1),
        (replace(JOB, strategy=eq.strategies.CHAS()), 1),
        (replace(JOB, budgets=(50, 200)), 1),
        (replace(JOB, runs=300), 1),
        (replace(JOB, estimator="controls"), 1),
        (JOB, 2),
        (STATISTICS, 1),
        (replace(STATISTICS, what="shape"), 1),
    ]
    names = {file_name(job, seed) for job, seed in [(JOB, 1), *others]}
    assert len(names) == len(others) + 1
    assert file_name(CurveJob(**{f.name: getattr(JOB, f.name) for f in fields(JOB)}), 1) in names


def wider(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
    """The variance of B-AS with another constant in place of one of its own."""
    return (math.sqrt(m2 / (count - 1)) + 3 * params[0] / math.sqrt(count)) ** 2


@pytest.mark.parametrize("job", [JOB, STATISTICS], ids=["curve", "statistics"])
def test_a_changed_strategy_never_meets_old_numbers(
    job: CurveJob | StatisticsJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file_name(job, 1)
    monkeypatch.setattr(eq.strategies.BAS, "variance", staticmethod(wider))
    formula = file_name(job, 1)
    monkeypatch.setattr(eq.strategies.BAS, "params", lambda self, budget, arms, support: (0.7,))
    parameters = file_name(job, 1)
    monkeypatch.setattr(eq.strategies.BAS, "warmup", 3)
    assert len({before, formula, parameters, file_name(job, 1)}) == 4
    monkeypatch.undo()
    assert file_name(job, 1) == before
    # Other strategies are not simulated again.
    other = replace(job, strategy=eq.strategies.GAFSMAX())
    kept = file_name(other, 1)
    monkeypatch.setattr(eq.strategies.BAS, "variance", staticmethod(wider))
    assert file_name(other, 1) == kept


def test_changed_estimators_never_meet_old_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    before, numbers = file_name(JOB, 1), file_name(STATISTICS, 1)
    monkeypatch.setattr(estimators, "RCOND", 1e-3)
    assert file_name(JOB, 1) != before
    assert file_name(STATISTICS, 1) == numbers


def test_a_changed_strategy_is_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "jobs", lambda design: {("left", "B-AS"): JOB, ("pulls", "B-AS"): STATISTICS})
    before = measure.measure_all(SMALL, tmp_path)
    monkeypatch.setattr(eq.strategies.BAS, "variance", staticmethod(wider))
    after = measure.measure_all(SMALL, tmp_path)
    assert before["left", "B-AS"][0].mean_pulls.tolist() != after["left", "B-AS"][0].mean_pulls.tolist()
    assert before["pulls", "B-AS"] != after["pulls", "B-AS"]
    assert len(list(tmp_path.iterdir())) == 4


def test_jobs_that_are_the_same_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    monkeypatch.setattr(measure, "_write", partial(noted, written, measure._write))
    monkeypatch.setattr(measure, "jobs", lambda design: {("left", "B-AS"): JOB, ("long", "B-AS"): JOB})
    results = measure.measure_all(SMALL, tmp_path)
    assert [path.suffix for path in written] == [".part"]
    assert list(results) == [("left", "B-AS"), ("long", "B-AS")]
    assert results["left", "B-AS"] is results["long", "B-AS"]


def noted(written: list[Path], write: Any, job: Any, found: Any, path: Path) -> None:
    """Write a file, and note where."""
    written.append(path)
    write(job, found, path)


def test_runs_that_jobs_share_are_simulated_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At all their budgets; each result is what it is alone."""
    b_as = JOB.strategy
    shared: dict[Any, Any] = {
        ("left",): JOB,
        ("lemma",): replace(JOB, budgets=(70, 100), estimator="controls"),
        ("pulls",): STATISTICS,
        ("other",): replace(JOB, strategy=eq.strategies.BAS(exploration=1)),
        ("longer",): replace(JOB, budgets=(100, 500), runs=64),
    }
    monkeypatch.setattr(measure, "jobs", lambda design: shared)
    seen: list[tuple[Any, float, int, int]] = []

    def simulate(setup: Any, first: int, runs: int, one: Any = cpu.simulate) -> Any:
        seen.append((setup.strategy, setup.checkpoints[-1], first, runs))
        return one(setup, first, runs)

    monkeypatch.setattr(cpu, "simulate", simulate)
    monkeypatch.setattr(measure, "_CORES", 1)
    found = measure.measure_all(SMALL, tmp_path)
    assert seen == [
        (b_as, 100, 0, 200),
        (shared["other",].strategy, 100, 0, 200),
        (b_as, 500, 0, 64),
    ]
    for key in (("left",), ("lemma",)):
        monkeypatch.setattr(measure, "jobs", lambda design, key=key: {key: shared[key]})
        alone = measure.measure_all(SMALL, tmp_path / key[0])
        assert [sim.losses.tolist() for sim in found[key]] == [sim.losses.tolist() for sim in alone[key]]


@pytest.mark.parametrize("runs", [200, 3000])
def test_each_half_of_the_runs_is_measured_with_the_multiples_of_the_other(runs: int) -> None:
    [setup] = setups(PAIR, JOB.strategy, [100], None, seed=3)
    ends = cpu.simulate(setup, 0, runs)
    measurement = blocks.Measurement(setup, ("controls", "gaussian"), [[np.zeros(11)] * 2], runs)
    [(sums, batches)] = measure.halves_crossed(measurement, ends)
    half = 1024 if runs == 3000 else 100
    parts = [ends.take(slice(half)), ends.take(slice(half, None))]
    found = [estimators.ArmSums.of(PAIR, part, 0, measurement.estimator) for part in parts]
    fits = [estimators.fit(each, measurement.estimator) for each in found]
    losses = [
        estimators.estimates(each, measurement.estimator, fit) for each, fit in zip(found, reversed(fits), strict=True)
    ]
    every = np.concatenate(losses, axis=1)
    assert sums.count == batches[:, -1].sum() == runs
    assert sums.mean[:2] == pytest.approx(every.mean(axis=1), rel=1e-12)
    assert sums.m2[:2] == pytest.approx(runs * every.var(axis=1), rel=1e-12)
    # Where the multiples do not matter, neither do the halves.
    assert sums.mean[2:4] == pytest.approx(ends.counts[0].mean(axis=1), rel=1e-12)


def test_a_curve_of_the_paper_agrees_with_a_simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = replace(JOB, runs=2000)
    monkeypatch.setattr(measure, "jobs", lambda design: {("left",): job})
    for here, there in zip(
        measure.measure_all(SMALL, tmp_path)["left",],
        eq.simulate_budgets(PAIR, [job.strategy], job.budgets, runs=2000, seed=99),
        strict=True,
    ):
        error = np.hypot(here.loss_errors, there.loss_errors)
        assert (abs(here.losses - there.losses) < 5 * error).all()


def test_tables_have_every_row(tables: Tables) -> None:
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
    assert rows_of.first_order(PAIR, 0.5) == pytest.approx(n**1.5 * (4 / T - 5 / n), rel=1e-3)


def test_where_the_loss_of_an_arm_comes_from() -> None:
    # Four runs of a Rademacher arm: two starved with 2 pulls, two with 4 pulls and means 0 and 1/2.
    problem = eq.Problem([eq.Gaussian(0, 9), eq.Rademacher()])
    counts, means = np.array([2.0, 2.0, 4.0, 4.0]), np.array([1.0, -1.0, 0.0, 0.5])
    both = [np.stack([values, values])[None] for values in (counts, means, counts * (1 - means**2))]
    found = measure.shape(Ends(*both), problem, 100)
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


def verdicts(tables: Tables) -> dict[str, bool]:
    return {claim.claim: claim.holds for claim in claims.judge(tables)}


def changed(tables: Tables, table: str, column: str, to: Any, **keys: Any) -> Tables:
    """The tables with one column of some rows set to a number, or to a function of the row."""
    rows = [
        row | {column: to(row) if callable(to) else to} if all(row[k] == v for k, v in keys.items()) else row
        for row in tables[table]
    ]
    assert rows != tables[table]
    return tables | {table: rows}


def test_claims_say_what_was_measured(tables: Tables) -> None:
    judged = claims.judge(tables)
    assert len(judged) == 22
    for claim in judged:
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
        ("Any algorithm", ("right", "rescaled_regret", 5.0, {"strategy": AUTO})),
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
def test_a_verdict_follows_the_numbers(tables: Tables, claim: str, change: Any) -> None:
    table, column, to, keys = change
    before, after = verdicts(tables), verdicts(changed(tables, table, column, to, **keys))
    [name] = [name for name in before if claim in name]
    assert before[name] != after[name]


def test_what_is_written(folder: Path, tables: Tables) -> None:
    judged = claims.judge(tables)
    files = page.write(folder, SMALL, tables, judged, figures.draw(tables))
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
    assert "±" not in text  # it is a half-width of 95% elsewhere, and these are standard errors
    assert text.count("data:image/svg+xml;base64,") == 4
    assert "http" not in text  # nothing is fetched
    assert text.count("does not hold</span>") == sum(not claim.holds for claim in judged)
    for heading, _ in page.TEXTS.values():
        assert heading in text.replace("&#39;", "'")


def test_a_design_is_checked() -> None:
    with pytest.raises(ValueError, match="runs must be an integer of at least 100, got 5"):
        paper.PaperDesign(runs=5)
    with pytest.raises(TypeError, match="runs"):
        paper.PaperDesign(runs=1e4)  # type: ignore[arg-type]


def test_numbers_with_errors() -> None:
    assert rows_of.with_error(3.14159, 0.012) == "3.14 (standard error 0.01)"
    assert rows_of.with_error(2716.4, 39.2) == "2,716 (standard error 39)"
    assert rows_of.with_error(6.38e-5, 7e-9) == "6.38e-05 (standard error 7e-09)"
    assert rows_of.with_error(33.0, 0.0) == "33"
