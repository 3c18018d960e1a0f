"""Intervals of a study: of each arm's samples in the order of asking, the same whenever one looks."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.inference.arm_intervals import intervals
from equipoise.intervals import Intervals, populations
from equipoise.ledger import evidence
from equipoise.ledger.evidence import _heavy_tails, _rank_tests, _ranks
from equipoise.ledger.state import ANSWERED_LATE, FORGOTTEN, WITHDRAWN
from equipoise.result.certificate import SLOW
from equipoise.result.summary import even_split
from tests.in_order import InOrder
from tests.unit.ledger.moments import of_populations, result_of_moments

ARMS = ["a", "b", "c"]


def value(rng: random.Random, support: Any) -> float:
    return float(rng.random() < 0.3) if support == "binary" else rng.random()


def lived(support: Any, seed: int, look: float, steps: int = 400) -> tuple[eq.Study, Intervals, np.ndarray[Any, Any]]:
    """A study with late answers, forgotten tickets and samples from elsewhere, and its sequences kept by hand."""
    rng, looks = random.Random(seed), random.Random(seed + 1)
    study = eq.Study(ARMS, budget=5000, support=support)
    by_hand = Intervals(3, support, budget=5000)
    state, line = by_hand.start(), InOrder(3)
    flying: list[tuple[eq.Ticket, int]] = []
    forgotten: list[eq.Ticket] = []
    for _ in range(steps):
        what = rng.random()
        if what < 0.4:
            for ticket in study.ask(rng.choice([1, 5])):
                flying.append((ticket, line.ask(ARMS.index(ticket.arm))))  # type: ignore[arg-type]
        elif what < 0.9 and flying:
            for _ in range(min(len(flying), rng.choice([1, 4]))):
                ticket, place = flying.pop(rng.randrange(len(flying)))
                x, k = value(rng, support), ARMS.index(ticket.arm)  # type: ignore[arg-type]
                study.tell(ticket, x)
                for ready in line.tell(k, place, x):
                    by_hand.update(state, k, ready)
        elif what < 0.95 and flying:
            ticket, place = flying.pop(rng.randrange(len(flying)))
            study.forget(ticket)
            forgotten.append(ticket)
            for ready in line.give_up(k := ARMS.index(ticket.arm), place):  # type: ignore[arg-type]
                by_hand.update(state, k, ready)
        elif what < 0.97 and forgotten:
            study.tell(forgotten.pop(rng.randrange(len(forgotten))), value(rng, support))
        elif what < 0.98:
            study.tell(arm="b", value=value(rng, support))
        if looks.random() < look:
            study.result().intervals(kind=looks.choice([None, "asymptotic"]))
    return study, by_hand, state


@pytest.mark.parametrize("support", [None, (0, 1), "binary"], ids=str)
@pytest.mark.parametrize("look", [0.0, 0.05, 0.7])
def test_in_the_order_of_asking(support: Any, look: float) -> None:
    """
    The same as sample by sample through `InOrder`, to the bit and however often one looks.

    A forgotten ticket's answer stays out even where its turn had not come, which `InOrder` would let in: the study
    here forgets a ticket only once.
    """
    for seed in range(5):
        study, by_hand, state = lived(support, seed, look)
        found = study.result().intervals()
        low, high = by_hand.bounds(state)
        assert (found.kind, found.level) == (by_hand.kind, 0.95)
        assert found.low.tolist() == low.tolist()
        assert found.high.tolist() == high.tolist()
        assert np.isfinite(high).all()


def test_a_late_answer_stays_out_whether_one_looked_or_not() -> None:
    for look in (False, True):
        study = eq.Study(1, support="binary")
        first, second, third = study.ask(3)
        study.tell(third, 1)
        study.tell(first, 1)
        study.forget(second)
        if look:
            study.result().intervals()
        study.tell(second, 0)
        result = study.result()
        assert result.counts[0] == 3
        assert result.means[0] == pytest.approx(2 / 3)
        two = Intervals(1, "binary")
        state = two.start()
        two.update(state, 0, 1)
        two.update(state, 0, 1)
        assert result.intervals()[0] == two.alone(state, 0)


def test_an_arm_waits_for_its_own_tickets_only() -> None:
    study = eq.Study(2, support="binary")
    a, b, a2, b2 = study.ask(4)
    for ticket in (b, a2, b2):
        study.tell(ticket, 1)
    low = study.result().intervals().low
    assert low[0] == 0  # behind a, which is in flight
    assert low[1] > 0
    study.tell(a, 1)
    low = study.result().intervals().low
    assert low[0] == low[1]


def test_an_earlier_result_stays_as_it_was() -> None:
    study, _, _ = lived((0, 1), 3, 0.0)
    earlier, looked_at = study.result(), study.result()
    kept = looked_at.intervals().low.tolist()
    for _ in range(2000):
        study.tell(study.ask(), 0.9)
    for ticket_id in range(study.ledger.issued):  # room was made, and what was in flight has come
        if math.isnan(study.ledger.answers(ticket_id)):
            study.ledger.tell(ticket_id, 0.1)
    study.result().intervals()
    assert earlier.intervals().low.tolist() == kept
    assert looked_at.intervals().low.tolist() == kept
    assert study.result().intervals().low.tolist() != kept


@pytest.mark.parametrize("copied", [copy.copy, lambda study: pickle.loads(pickle.dumps(study))], ids=["copy", "pickle"])
def test_a_saved_study_keeps_its_sequences(copied: Any) -> None:
    study, _, _ = lived((0, 1), 4, 0.1)
    again = copied(study)
    assert again.result().intervals().low.tolist() == study.result().intervals().low.tolist()
    # What was forgotten before stays out after.
    assert str(again.result().certificate) == str(study.result().certificate)


@pytest.mark.parametrize("support", [None, (0, 1), "binary"], ids=str)
def test_a_saved_result_answers_the_same(support: Any) -> None:
    study, _, _ = lived(support, 5, 0.0)
    result = study.result(seconds=np.linspace(1, 2, 3000))
    again = pickle.loads(pickle.dumps(result))
    assert len(pickle.dumps(result)) < 10_000  # not the samples
    kinds: tuple[Any, ...] = (None, "asymptotic", "fixed-n", "betting")
    for kind in kinds if support else kinds[:3]:
        assert again.intervals(0.9, kind).high.tolist() == result.intervals(0.9, kind).high.tolist()
    assert repr(again) == repr(result)
    assert again.certificate == result.certificate


def test_a_larger_budget_does_not_tune_anew() -> None:
    one, two = eq.Study(2, budget=200), eq.Study(2, budget=200)
    two.set_budget(100_000)
    for study in (one, two):
        rng = random.Random(1)
        for _ in range(200):
            study.tell(study.ask(), rng.gauss(0, 1))
    assert one.result().intervals().low.tolist() == two.result().intervals().low.tolist()


# ---- what a result says


def test_a_mapping_by_arm() -> None:
    study, _, _ = lived((0, 1), 6, 0.0)
    result = study.result()
    found = result.intervals()
    assert list(found) == ARMS
    assert len(found) == 3
    for arm in ARMS:
        low, high = found[arm]
        assert 0 <= low < result.means[arm] < high <= 1
    assert "valid at any time" in found.promise
    assert repr(found).startswith("{'a': (0.")
    with pytest.raises(KeyError):
        found["z"]
    # Levels and kinds.
    widths = [float(result.intervals(level).half_widths.sum()) for level in (0.5, 0.9, 0.99)]
    assert all(a < b for a, b in pairwise(widths))
    assert (result.intervals(kind="fixed-n").half_widths < found.half_widths).all()
    assert result.intervals(kind="asymptotic").low.tolist() != found.low.tolist()
    for wrong in (0, 1, 1.5, "high"):
        with pytest.raises((ValueError, TypeError), match="level must be"):
            result.intervals(wrong)  # type: ignore[arg-type]
        with pytest.raises((ValueError, TypeError), match="level must be"):
            result.difference("a", "b", wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kind must be one of 'betting', 'asymptotic'"):
        result.intervals(kind="narrow")  # type: ignore[arg-type]


def test_fixed_n_takes_samples_from_elsewhere() -> None:
    study = eq.Study(["a", "b"], support="binary")
    study.tell_moments("a", 100, 0.5, 25.0)
    result = study.result()
    assert result.intervals()["a"] == (0.0, 1.0)
    # Clopper and Pearson at 97.5%: with the low end as the mean, 50 or more of 100 have a probability of 1.25%.
    low, high = result.intervals(kind="fixed-n")["a"]
    assert sum(math.comb(100, i) * low**i * (1 - low) ** (100 - i) for i in range(50, 101)) == pytest.approx(0.0125)
    assert high == pytest.approx(1 - low)


def test_moments_alone_have_the_fixed_n_interval() -> None:
    result = result_of_moments([100, 100], [1.0, 1.0], [1.0, 2.0])
    assert result.intervals().kind == "fixed-n"
    assert "not valid under adaptive stopping (fixed n)" in repr(result)
    with pytest.raises(ValueError, match="kind must be 'fixed-n' for a result that was made of moments alone"):
        result.intervals(kind="asymptotic")
    assert result.certificate.answered is None


def test_written_down() -> None:
    study = eq.Study([1, "x"], support=None)
    for _ in range(60):
        ticket = study.ask()
        study.tell(ticket, random.Random(ticket.id).gauss(0, 1) if ticket.arm == 1 else 0.5)
    study.tell_moments("x", 1, 0.5, 0.0)
    known = json.loads(study.result().to_json())
    low, high = known["intervals"]["1"]
    assert low < known["means"]["1"] < high
    assert (known["interval_kind"], known["interval_level"]) == ("asymptotic", 0.95)
    # An end that is infinite is not known.
    assert json.loads(eq.Study(["y"]).result().to_json())["intervals"] == {"y": [None, None]}
    table = repr(study.result()).splitlines()
    assert table[1].endswith("95% interval  std. error")
    assert f"{low:.2f} to {high:.2f}" in table[2]
    assert table[4].startswith("95% confidence sequences, simultaneous over arms")


@pytest.mark.parametrize("many", [10, 10**6])
def test_a_few_of_many_arms(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval of a pair need not follow a thousand arms, and says the same."""
    monkeypatch.setattr(evidence, "MANY", many)
    study = eq.Study(1000, support=(0, 1))
    rng = random.Random(1)
    for ticket in study.ask(8000):
        study.tell(ticket, rng.random())
    result = study.result()
    same = result.difference(3, 3)
    pair = result.difference(999, 3)
    assert (same.low, same.high) == (0.0, 0.0)
    assert (many == 10) == (not result.known.snapshot.evidence._states)  # type: ignore[union-attr]
    whole = result.known.sequences.difference(result.known.snapshot.evidence.state("betting"), 999, 3)  # type: ignore[union-attr]
    assert (pair.low, pair.high) == pytest.approx(whole)
    few = intervals(result.known, [7, 5])
    assert np.column_stack([few.low, few.high]).tolist() == np.asarray(result.intervals())[[7, 5]].tolist()


# ---- populations


def test_populations_without_replacement() -> None:
    """By hand: 4 items, a one and a zero seen, so that one to three are ones; R is 1/2 at most, and leaves none out."""
    study = eq.Study(["a"], support="binary", populations={"a": 4})
    for x in (1, 0):
        study.tell(study.ask(), x)
    result = study.result()
    assert result.intervals()["a"] == (0.25, 0.75)
    for x in (0, 0):
        study.tell(study.ask(), x)
    result = study.result()
    assert result.intervals()["a"] == (0.25, 0.25)
    assert result.intervals(kind="fixed-n")["a"] == (0.25, 0.25)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize("ones", [0, 1, 7, 20, 40])
def test_a_population_is_missed_no_more_often_than_promised(ones: int, alpha: float) -> None:
    """The exact probability that the interval of 40 items, so many of them ones, ever leaves out their share."""
    size, missed = 40, 0.0
    reached = {(0, 0): 1.0}  # the probability of so many ones and zeros with no miss before
    for _ in range(size + 1):
        following: dict[tuple[int, int], float] = {}
        for (s, f), p in reached.items():
            low, high = populations.binary(s, f, size, alpha)
            if not low <= ones / size <= high:
                missed += p
            elif s + f < size:
                one = (ones - s) / (size - s - f)
                for step, q in (((s + 1, f), one), ((s, f + 1), 1 - one)):
                    if q > 0:
                        following[step] = following.get(step, 0.0) + p * q
        reached = following
    assert missed <= alpha
    if alpha == 0.3 and ones == 7:
        assert missed > 0.1  # it is no wider than it need be


def test_a_large_population_is_as_good_as_endless() -> None:
    for support in ("binary", None):
        study, _, _ = lived(support, 8, 0.0)
        result = study.result()
        kind: Any = "betting" if support == "binary" else "asymptotic"
        found = of_populations(result, [1e7] * 3).intervals()
        assert found.kind == kind
        assert found.low == pytest.approx(result.intervals(kind=kind).low, abs=1e-4)
        assert found.high == pytest.approx(result.intervals(kind=kind).high, abs=1e-4)
        # A smaller one is known better.
        smaller = of_populations(result, [400] * 3)
        for each in (kind, *(["fixed-n"] if support != "binary" else [])):
            assert (smaller.intervals(kind=each).half_widths < result.intervals(kind=each).half_widths).all()


# ---- the certificate


def test_a_certificate() -> None:
    rng = random.Random(2)
    study = eq.Study(["even", "skewed"], budget=400)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, rng.gauss(0, 2) if ticket.arm == "even" else rng.expovariate(1))
    result = study.result()
    found = result.certificate
    k = list(result.arms).index(result.worst)
    assert found.margin == result.intervals().margins[k]
    assert found.standard_error == result.standard_errors[result.worst]
    assert (found.loss, found.uniform_loss, found.oracle_loss) == (
        result.loss,
        result.uniform_loss,
        result.oracle_loss,
    )
    # The bias by hand, from the samples themselves.
    assert found.skewed == "skewed"
    arms, values = (study.ledger.tickets[name] for name in ("arm", "value"))
    x = values[arms == 1]
    skewness = float(((x - x.mean()) ** 3).mean() / ((x - x.mean()) ** 2).mean() ** 1.5)
    assert found.bias == result.biases["skewed"]
    assert found.bias == pytest.approx(-(1 - len(x) / 400) * skewness * x.std(ddof=1) / len(x), rel=0.3)
    text = str(found)
    assert repr(found) == text
    assert text.startswith(f"Least precise: {result.worst}, ±{found.margin:.3g} (95%), standard error ")
    best = f"the best allocation would have given {math.sqrt(found.oracle_loss):.3g}."
    assert f" Ignoring adaptive sampling, the largest standard error is {math.sqrt(found.loss):.3g}; {best}" in text
    assert found.baseline == result.baseline
    assert found.even_split == even_split(result.known)
    assert found.even_split in text
    assert "The samples of skewed are skewed" in text
    assert "never answered" not in text
    assert "Warning" not in text


def test_what_does_not_go_by_the_samples_has_no_bias() -> None:
    study = eq.Study(2, budget=400, strategy="uniform")
    for ticket in study.ask(400):
        study.tell(ticket, random.Random(ticket.id).expovariate(1))
    assert (study.result().certificate.skewed, study.result().certificate.bias) == (None, 0.0)


def test_who_never_answers_is_told() -> None:
    study = eq.Study(2, budget=100)
    tickets = study.ask(100)
    for ticket in tickets[:80]:
        study.tell(ticket, float(ticket.id % 5))
    for ticket in tickets[80:92]:
        study.forget(ticket)
    study.tell(tickets[80], 1.0)  # after all
    study.tell(arm=0, value=2.0)
    found = study.result().certificate
    assert found.answered is not None
    assert (found.answered.asked, found.answered.given_up, found.answered.in_flight) == (100, 11, 8)
    assert "Of 100 samples asked for, 11 (12.0%) were never answered" in str(found)


def told(values: list[list[float]], **options: Any) -> eq.Study:
    """A study of arms with these samples."""
    study = eq.Study(len(values), budget=sum(map(len, values)) + 10, strategy="uniform", **options)
    left = dict(zip(study.arms, map(iter, values), strict=True))
    for ticket in study.ask(sum(map(len, values))):
        study.tell(ticket, next(left[ticket.arm]))
    return study


def test_zeros_and_ones_are_recognised() -> None:
    """150 ones leave room for a zero; the intervals are those of a study that was told so."""
    values: list[list[float]] = [[1] * 150, [i % 3 == 0 for i in range(150)]]
    study, known = told(values), told(values, support="binary").result()
    found = study.result()
    assert found.known.recognised
    assert not known.known.recognised
    assert found.support is None
    assert np.asarray(found.intervals()).tolist() == np.asarray(known.intervals()).tolist()
    assert intervals(found.known, [1]).low == intervals(known.known, [1]).low
    assert found.intervals(kind="fixed-n")[0] == known.intervals(kind="fixed-n")[0]
    assert found.intervals(kind="asymptotic")[0] == (1, 1)
    remark = 'All samples are 0 or 1, and the intervals assume that no other value can occur; support="binary" says so.'
    assert remark in found.remarks()
    assert remark not in known.remarks()
    assert pickle.loads(pickle.dumps(found)).intervals()[0] == known.intervals()[0]
    study.tell(study.ask(), 0.5)
    other = study.result()
    assert (other.known.recognised, other.interval_kind) == (False, "asymptotic")
    assert remark not in other.remarks()
    # What was seen before does not change.
    assert np.asarray(found.intervals()).tolist() == np.asarray(known.intervals()).tolist()


def test_few_zeros_and_ones_say_little() -> None:
    """With fewer than 10 samples of two arms each, others may still come; with fewer than 20 if all are equal."""
    found = told([[0, 1] * 4, [0, 1] * 4]).result()
    assert found.known.recognised
    assert found.intervals().margins.tolist() == [math.inf, math.inf]
    assert "No 95% interval yet for any arm (intervals begin at 10 samples of an arm)." in repr(found)
    small = told([[0, 1] * 4, [0, 1] * 4], populations=[8, 40]).result()
    assert small.intervals().margins.tolist() == [0, math.inf]
    some: list[list[list[float]]] = [[[0, 1] * 5, [0] * 10], [[0] * 20, [1] * 20]]
    for values in some:
        known = told(values, support="binary").result().intervals()
        assert np.asarray(told(values).result().intervals()).tolist() == np.asarray(known).tolist()
    assert told([[0] * 19, [1] * 19]).result().intervals().margins.tolist() == [math.inf, math.inf]
    enough = told([[0, 1] * 12] * 2, populations=[30, 40]).result().intervals()
    assert (
        np.asarray(enough).tolist()
        == np.asarray(told([[0, 1] * 12] * 2, populations=[30, 40], support="binary").result().intervals()).tolist()
    )


def test_samples_from_elsewhere_are_looked_at_too() -> None:
    study = told([[0, 1] * 15, [1] * 30])
    assert study.result().known.recognised
    study.tell_moments(0, 4, 0.5, 1.0)
    assert study.result().known.recognised
    study.tell_moments(0, 4, 0.5, 1.1)
    assert not study.result().known.recognised
    assert not told([[0, 1] * 15, [0, 2] * 15]).result().known.recognised
    assert not eq.Study(2).result().known.recognised


@pytest.mark.parametrize("n", [50, 60, 100, 300, 1000])
def test_heavy_tails_are_not_seen_in_light_ones(n: int) -> None:
    """At most 1% of 500 arms with exponential samples, standard error 0.4%, and none of those with Gaussian ones."""
    rng, arms = np.random.default_rng(9), np.repeat(np.arange(500), n)
    assert not _heavy_tails(arms, rng.normal(1e6, 1, len(arms)), 500).any()
    found = _heavy_tails(arms, rng.exponential(size=len(arms)), 500).mean()
    assert found <= 0.01 + 5 * math.sqrt(0.01 * 0.99 / 500)
    # Of lognormal samples with a log-sd of 0.8, three in four are seen with 1,000 samples.
    heavy = _heavy_tails(arms, rng.lognormal(0, 0.8, len(arms)), 500).mean()
    assert heavy > (0.7 if n == 1000 else 2 * found)


@pytest.mark.parametrize(("arms", "least"), [(1, 0.1), (10, 0.5), (100, 0.95)])
def test_few_studies_are_warned_without_a_cause(arms: int, least: float) -> None:
    """
    Of 400 studies, 100 of a hundred arms, with 100 exponential samples an arm at most 5% have a heavy arm, within five
    standard errors of 1% to 2%. Of those with log-normal samples it is a fourth, most, or all.
    """
    rng, studies = np.random.default_rng(12), 100 if arms == 100 else 400
    of = np.repeat(np.arange(arms), 100)
    light = [_heavy_tails(of, rng.exponential(size=len(of)), arms).any() for _ in range(studies)]
    heavy = [_heavy_tails(of, rng.lognormal(0, 0.8, len(of)), arms).any() for _ in range(studies)]
    assert np.mean(light) <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / studies)
    assert np.mean(heavy) > least


def test_heavy_tails_by_hand() -> None:
    """One of 50 samples makes 98% of the squared deviations; among 49 it is not told, and of equal ones neither."""
    values = np.array([*[0.0] * 49, 50.0])
    assert _heavy_tails(np.zeros(50, int), values, 2).tolist() == [True, False]
    assert _heavy_tails(np.zeros(50, int), -values, 1).tolist() == [True]
    assert _heavy_tails(np.zeros(49, int), values[1:], 1).tolist() == [False]
    assert _heavy_tails(np.zeros(50, int), np.ones(50), 1).tolist() == [False]
    assert _heavy_tails(np.zeros(0, int), np.zeros(0), 2).tolist() == [False, False]


def test_heavy_tails_are_told() -> None:
    rng = np.random.default_rng(11)
    values = [rng.normal(3, 1, 2000).tolist(), rng.lognormal(0, 0.8, 2000).tolist()]
    result = told(values).result()
    sentence = (
        "1: a few extreme samples make much of the variance, and its interval may be too narrow; take more samples, or "
        "estimate a trimmed mean or the mean of logarithms."
    )
    assert result.certificate.heavy == (1,)
    assert sentence in str(result.certificate)
    assert sentence in result.remarks()
    assert sentence in pickle.loads(pickle.dumps(result)).remarks()
    # Where the interval does not rest on the variance, or the mean is known, it does not matter.
    assert told(values, support=(-99, 99)).result().certificate.heavy == ()
    assert told(values, populations=[3000, 2000]).result().certificate.heavy == ()


def test_tickets_of_retired_arms_are_not_waited_for() -> None:
    study = eq.Study(2, budget=100, strategy="uniform")
    tickets = study.ask(100)
    for ticket in tickets[:80]:
        study.tell(ticket, float(ticket.id % 5))
    study.retire(1)
    for ticket in tickets[80:90]:
        study.forget(ticket)
        study.forget(ticket)
    found = study.result().certificate
    assert found.answered is not None
    assert (found.answered.given_up, found.answered.withdrawn, found.answered.in_flight) == (5, 5, 10)
    assert found.answered.share == 5 / 85
    assert "Of 95 samples asked for, 5 (5.9%) were never answered" in str(found)
    study.tell(tickets[81], 1.0)  # after all
    assert study.ledger.tickets["status"][[80, 81, 83]].tolist() == [FORGOTTEN, ANSWERED_LATE, WITHDRAWN]


def test_slow_answers_that_differ_are_told() -> None:
    """Values of arm 0 grow with the time they take, and some are given up; those of arm 1 do not."""
    rng = random.Random(3)
    study = eq.Study(2, budget=440, strategy="uniform")
    seconds = np.full(500, math.nan)
    tickets = study.ask(440)
    for ticket in tickets[:400]:
        seconds[ticket.id] = rng.expovariate(1)
        study.tell(ticket, rng.gauss(0, 1) + (seconds[ticket.id] if ticket.arm == 0 else 0))
    told = study.result(seconds=seconds).certificate
    assert told.slow == (0,)
    assert "Warning: slow answers differ from fast ones (rank test, p < 0.001) in 0, and some answers are" in str(told)
    assert study.result().certificate.slow is None
    assert study.result(seconds=seconds[:0]).certificate.slow == ()
    for ticket in tickets[400:]:
        study.forget(ticket)
    assert study.result(seconds=seconds).certificate.slow == (0,)
    before = study.result(seconds=seconds)
    for ticket in tickets[400:]:
        study.tell(ticket, 1.0)
    # Later answers do not change a result; and where every answer is in, it does not matter which was slow.
    assert before.certificate.slow == (0,)
    assert pickle.loads(pickle.dumps(before)).certificate.slow == (0,)
    assert study.result(seconds=seconds).certificate.slow == ()


def test_what_missing_slow_answers_may_do_to_a_mean() -> None:
    """The slower half of ten samples has the mean 7 where all have 4.5; two of twelve are missing."""
    study = eq.Study(1, budget=12)
    tickets = study.ask(12)
    for ticket in tickets[:10]:
        study.tell(ticket, float(ticket.id))
    evidence = study.result(seconds=np.arange(12.0)).known.snapshot.evidence
    assert evidence is not None
    assert evidence.slow_bias == pytest.approx([2 / 12 * (4.5 - 7)])


def test_what_drifts_makes_no_slow_answers() -> None:
    """
    Values and seconds drift, warm up and come in waves together, and say nothing of each other at any one time.

    The test at p < 0.001 names at most 1% of 1,000 arms; it would be 0.1% of independent ones, standard error 0.1%.
    """
    rng, t = np.random.default_rng(7), np.arange(100)
    together = [3 * t / 100, 3 * np.exp(-t / 5), np.sin(t / 20)]
    arms = np.repeat(np.arange(1000), 100)
    for trend in together:
        values, seconds = (rng.normal(size=(1000, 100)) + trend for _ in range(2))
        p = _rank_tests(arms, values.ravel(), seconds.ravel(), 1000)
        assert (p < SLOW).mean() <= 0.01
        # What differs at each time is found all the same.
        p = _rank_tests(arms, (values + seconds).ravel(), seconds.ravel(), 1000)
        assert (p < SLOW).mean() > 0.99


def test_samples_like_their_neighbours_make_few_slow_answers() -> None:
    """Values and seconds that each depend on the one before, with a correlation of 0.5: below 1% of 2,000 arms."""
    rng = np.random.default_rng(8)
    both = rng.normal(size=(2, 2000, 200))
    for i in range(1, 200):
        both[:, :, i] = 0.5 * both[:, :, i - 1] + math.sqrt(0.75) * both[:, :, i]
    p = _rank_tests(np.repeat(np.arange(2000), 200), both[0].ravel(), both[1].ravel(), 2000)
    assert (p < SLOW).mean() <= 0.01


def test_ranks_within_groups() -> None:
    values, groups = np.array([3.0, 1, 1, 9, 3, 1, 1]), np.array([0, 0, 1, 1, 0, 1, 1])
    assert _ranks(values, groups).tolist() == [2.5, 1, 2, 4, 2.5, 2, 2]
    assert _ranks(values[:0], groups[:0]).tolist() == []


def test_rank_tests_say_what_they_should() -> None:
    """Of 2,000 arms of 60 binary samples that time says nothing about, p < 0.05 in 2.5 to 5%, standard error 0.5%."""
    rng = np.random.default_rng(4)
    study = eq.Study(2000, budget=120_000, strategy="uniform", support="binary")
    ids = study.ledger.latest(study.ledger.ask(120_000))
    study.ledger.tell(ids, (rng.random(120_000) < 0.3).astype(float))
    p = study.result(seconds=np.round(rng.exponential(size=120_000), 1)).known.snapshot.evidence.slow  # type: ignore[union-attr]
    assert p is not None
    error = math.sqrt(0.05 * 0.95 / 2000)
    assert 0.025 - 5 * error < (p < 0.05).mean() < 0.05 + 5 * error


def test_powers_enter_once_however_often_one_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """In small blocks, too, so that a look at very many samples takes little memory; as the definition has them."""
    monkeypatch.setattr(evidence, "_BLOCK", 7)
    sizes: list[int] = []
    right = evidence.Powers.merged

    def merged(powers: evidence.Powers, arms: Any, values: Any) -> evidence.Powers:
        sizes.append(len(values))
        return right(powers, arms, values)

    monkeypatch.setattr(evidence.Powers, "merged", merged)
    rng = random.Random(9)
    study, samples = eq.Study(ARMS, budget=300), {arm: list[float]() for arm in ARMS}
    for n in range(1, 201):
        ticket = study.ask()
        samples[str(ticket.arm)].append(1.7e9 + rng.expovariate(1))
        study.tell(ticket, samples[str(ticket.arm)][-1])
        if n in (1, 2, 50, 200):
            shown = study.result().known.snapshot.evidence
            assert shown is not None
            for k, arm in enumerate(ARMS):
                x = np.array(samples[arm]) - 1.7e9
                sums = [float(((x - x.mean()) ** power).sum()) if len(x) else 0.0 for power in (2, 3, 4)]
                found = shown.powers
                assert found.count[k] == len(x)
                assert [found.m2[k], found.m3[k], found.m4[k]] == pytest.approx(sums, rel=1e-6, abs=1e-6)
    assert sum(sizes) == 200
    assert max(sizes) <= 7
