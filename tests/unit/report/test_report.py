"""What a report says of a study in a store."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import report
from equipoise.cli import main
from equipoise.run import seeds
from equipoise.store import Header, Log, Turn


def sample(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)


ARMS = ["calm", "rough", "<b>&[red]"]


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, eq.Result]:
    where = tmp_path / "study.db"
    about = {"measure": "stdout", "arms": {"calm": "roll <dice>"}}
    eq.estimate(sample, 150, arms=ARMS, seed=1, store=where, about=about)
    return where, eq.estimate(sample, 600, arms=ARMS, store=where, precision=0.7, level=0.9, about=about)


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["equipoise", "report", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.out, printed.err


def test_a_report_is_what_the_log_says(kept: tuple[Path, eq.Result]) -> None:
    where, result = kept
    read = report.read(where)
    assert dict(read.result.means) == dict(result.means)
    assert (read.level, read.precision, read.budget, read.in_flight) == (0.9, 0.7, 600, 0)
    assert read.spent == result.samples
    assert read.reached
    assert read.history[-1].samples == result.samples
    assert 150 < result.samples < 600
    assert read.history[-1].widest == pytest.approx(result.intervals(0.9).half_widths.max())
    assert [moment.samples for moment in read.history] == sorted({moment.samples for moment in read.history})
    # An error in the history is that of the study as it was then, all at the level of the last run.
    then = next(moment for moment in read.history if moment.samples > 90)
    assert then.samples < 150
    assert then.arms is not None
    study = eq.Study(ARMS, budget=150)
    pulls = dict.fromkeys(ARMS, 0)
    for _ in range(then.samples):
        ticket = study.ask()
        arm = str(ticket.arm)
        study.tell(ticket, sample(arm, seeds.seed(seeds.base(1, arm), pulls[arm])))
        pulls[arm] += 1
    assert then.arms.tolist() == pytest.approx(study.result().intervals(0.9).half_widths.tolist())
    assert read.began <= read.latest
    assert read.drifting == ()


def test_json(
    kept: tuple[Path, eq.Result], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where, result = kept
    code, out, _ = call(monkeypatch, capsys, where, "--json")
    assert code == 0
    known = json.loads(out)
    for name in ("means", "counts", "variances"):
        assert known[name] == dict(getattr(result, name))
    low, high = known["intervals"]["rough"]
    assert (low + high) / 2 == pytest.approx(result.means["rough"])
    assert (high - low) / 2 == pytest.approx(result.intervals(0.9).half_widths[1])
    assert known["reached"] is known["precision_reached"] is result.reached is True
    assert known["interval_level"] == known["level"] == 0.9
    assert result.level == 0.9
    assert known["history"][-1]["arms"].keys() == set(ARMS)
    assert known["about"]["arms"] == {"calm": "roll <dice>"}


def test_in_a_terminal(
    kept: tuple[Path, eq.Result], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where, result = kept
    monkeypatch.setenv("COLUMNS", "300")
    code, out, err = call(monkeypatch, capsys, where)
    assert (code, err) == (0, "")
    assert "study.db" in out.replace("\n", "")  # a long name is broken
    for text in ("rough", "<b>&[red]", "90% interval", "samples asked for", "✓ Every mean is known to ±0.7 ("):
        assert text in out
    assert f"{result.counts['rough']} │" in out
    assert "Strategy: auto. " in out
    assert out.count("Least precise: ") == 1
    assert "(90%), standard error" in out


def test_while_it_runs(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    seen = []
    eq.estimate(sample, 200, arms=ARMS, seed=1, store=where, progress=lambda _: seen.append(report.read(where)))
    assert seen[-1].result.samples == 200
    assert len(seen) > 1


def test_in_any_store(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study.toml"
    study.write_text('budget = 12\nmeasure = "stdout"\n[arms]\na = "echo 1"\nb = "echo $((EQUIPOISE_SEED % 9))"\n')
    monkeypatch.setattr(sys, "argv", ["equipoise", "run", str(study), "--store", where, "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    known = json.loads(capsys.readouterr().out)
    code, out, _ = call(monkeypatch, capsys, where, "--json")
    assert code == 0
    assert json.loads(out)["means"] == known["means"]
    assert sum(known["counts"].values()) == 12


def test_before_anything_is_known(tmp_path: Path) -> None:
    header = Header(arms=["a", "b"], strategy=eq.strategies.Auto(), support=None, budget=50, seed=1)
    with Log(tmp_path / "study.db", header) as log:
        empty = report.read(tmp_path / "study.db")
        assert empty.result.samples == 0
        assert "2 of 2 arms have fewer than 2 samples" in report.view(empty)["verdict"]
        assert "nan" not in json.dumps(report.to_dict(empty), allow_nan=False).lower()
        assert report.facts(empty)[1].endswith("No sample has been asked for yet.")

        def work(turn: Turn) -> None:
            first, second, third = turn.ask(3)
            turn.tell(first, 2.0, 0.1)
            turn.failed(second, "no")
            turn.forget(third, "no answer in 3 seconds")

        log.turn(work)
        begun = report.read(tmp_path / "study.db")
        assert (begun.in_flight, begun.failures, begun.given_up, begun.spent) == (1, 1, 1, 2)
        assert "Sampling failed once; 1 ticket was given up without an answer." in report.facts(begun)


def test_what_was_spent_without_a_budget(tmp_path: Path) -> None:
    """By hand: 5 samples at 1 and 7 at 10; the report once took every sample to cost 1 where there is no budget."""
    where = tmp_path / "study.db"
    result = eq.estimate({"cheap": [1, 2, 3, 4, 5], "dear": [2, 9, 4, 4, 1, 3, 8]}, costs=[1, 10], store=where)
    read = report.read(where)
    assert (read.budget, read.spent, result.spent) == (None, 75.0, 75.0)
    assert report.to_dict(read)["spent"] == 75.0
    assert ". 75 spent, 0 in flight. " in report.facts(read)[1]


def test_a_population_in_the_store(tmp_path: Path) -> None:
    pools = {"few": [1, 2, 3, 4], "many": [i % 7 for i in range(500)]}
    result = eq.estimate(lambda item: item, 100, populations=pools, seed=1, store=tmp_path / "study.db")
    read = report.read(tmp_path / "study.db")
    assert read.result.standard_errors["few"] == 0
    assert dict(read.result.standard_errors) == dict(result.standard_errors)


def test_samples_that_drift_are_named(tmp_path: Path) -> None:
    """Of 40 arms of 60 independent samples none drifts (at 4 standard errors, 40 * 3e-5 would), of 2 that rise both."""
    rng = np.random.default_rng(5)
    still = {f"still {k}": rng.normal(size=60).tolist() for k in range(40)}
    rising = {f"rising {k}": (rng.normal(size=60) + np.linspace(0, 4, 60)).tolist() for k in range(2)}
    eq.estimate(still | rising, store=tmp_path / "study.db")
    read = report.read(tmp_path / "study.db")
    assert read.drifting == ("rising 0", "rising 1")
    assert "The samples of 'rising 0', 'rising 1' drift" in " ".join(report.facts(read))


def test_more_arms_than_fit(tmp_path: Path) -> None:
    eq.estimate(lambda arm, seed: seed % (arm + 2), 400, arms=50, seed=1, store=tmp_path / "study.db")
    read = report.read(tmp_path / "study.db")
    titles, *rows = report.rows(read.result)
    assert (titles[0], len(rows)) == ("arm", 20)
    assert rows[0][0] == str(read.result.worst)
    assert "least precise of 50 arms" in report.view(read)["table"]["note"]


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.db").write_text("no database, and long enough to be told from one by its first words\n" * 20)
    eq.estimate({"a": [1, 2, 3]}, store=tmp_path / "study.db")
    for words, sentence in (
        ([tmp_path / "nowhere.db"], "there is no store"),
        ([tmp_path / "text.db"], "is not an equipoise store"),
        ([tmp_path / "study.db", "--png", tmp_path / "a.jpg"], "whose name ends in .png"),
        ([tmp_path / "study.db", "--html", tmp_path / "no" / "a.html"], "there is no folder"),
    ):
        code, out, err = call(monkeypatch, capsys, *words)
        assert (code, out) == (2, "")
        assert sentence in err
        assert len(err.strip().splitlines()) == 1


def test_how_long_the_rest_takes_is_said_of_a_study_that_runs(tmp_path: Path) -> None:
    """One without samples in flight is not running, and nobody knows when it will go on."""
    rng, store = np.random.default_rng(1), tmp_path / "study.db"
    eq.estimate({arm: rng.normal(size=400).tolist() for arm in "ab"}, precision=0.05, budget=150, store=store)
    assert report.read(store).result.verdict.endswith(" more samples needed.")
    with eq.open(store, arms=["a", "b"], budget=200, precision=0.05) as study:
        study.ask()
    assert report.read(store).result.verdict.endswith(")."), "such as (up to 1 second)"
