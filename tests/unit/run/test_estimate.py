"""`estimate`: every kind of sampler, every reason to stop, wherever it runs."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import math
import pickle
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import report
from equipoise.inference import arm_intervals
from equipoise.inference.known import Known
from equipoise.intervals import asymptotic
from equipoise.store import Log, differences, replay
from equipoise.study import policy
from tests.driving import Clock, drive
from tests.logs import events, kinds
from tests.unit.ledger.moments import result_of_moments
from tests.waiting import HANG

ARMS = ["calm", "rough"]
THREE: Any = 3


def sample(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)


def enough(half: float, arms: int) -> int:
    """How many samples of variance one it takes for an asymptotic half-width, without a budget."""
    (rho2, *_) = asymptotic.settings(-math.inf, math.inf, 1000, 0.05 / arms)
    return next(t for t in range(20, 10**6) if asymptotic.radius(t, rho2, 0.05 / arms) <= half)


def brief(result: eq.Result) -> tuple[Any, ...]:
    return dict(result.counts), dict(result.means), dict(result.variances)


# ---- what a study is made of


def test_options_reach_the_study(where: str) -> None:
    """Costs, weights and another norm decide as they do in a study, and are the same when it goes on."""
    options: dict[str, Any] = {"objective": 1, "costs": {"calm": 1, "rough": 5}, "weights": [1, 4], "seed": 3}
    result = eq.estimate(sample, 3000.0, arms=ARMS, store=where, **options)
    # T in proportion to sqrt(w s²/c): 1 to sqrt(4 · 16/5); the money is spent.
    assert result.counts["rough"] / result.counts["calm"] == pytest.approx(math.sqrt(64 / 5), rel=0.25)
    assert 2995 < result.spent <= 3000
    again = eq.estimate(sample, 6000.0, arms=ARMS, store=where, **options)
    assert 5995 < again.spent <= 6000
    with pytest.raises(ValueError, match=r"costs must be .* to continue the study in the store"):
        eq.estimate(sample, 6000.0, arms=ARMS, store=where, **options | {"costs": [1, 4]})
    whole = eq.estimate(sample, 6000.0, arms=ARMS, **options)
    assert whole.spent == again.spent
    seen: list[eq.Progress] = []
    eq.estimate(sample, 3000.0, arms=ARMS, progress=seen.append, **options)
    assert (seen[-1].spent, seen[-1].budget) == (result.spent, 3000.0)


def test_precision_closes_arms_where_samples_cost() -> None:
    result = eq.estimate(sample, 20_000.0, arms=ARMS, costs=[1, 10], precision=[0.5, 0.8], seed=1)
    assert result.spent < 20_000
    assert (result.intervals(0.95).half_widths <= [0.5, 0.8]).all()


def test_slow_answers_that_differ_are_told(where: str) -> None:
    """What a sampler gives grows with the time it takes; half of it is known from the log alone."""
    clock = Clock()

    def measure(arm: str, seed: int) -> float:
        wait = random.Random(seed).random()
        clock.now += wait
        return wait if arm == "rough" else random.Random(seed + 1).random()

    sampled = functools.partial(drive, measure, arms=ARMS, strategy="uniform", seed=2, clock=clock)
    half = sampled(150, store=where)
    assert replay(where).study.result().certificate.slow is None
    result = sampled(300, store=where)
    for each in (half, result, sampled(150)):
        assert each.known.snapshot.evidence is not None
        assert each.known.snapshot.evidence.slow is not None
        calm, rough = each.known.snapshot.evidence.slow
        assert rough < 1e-6 < 0.01 < calm
        assert each.certificate.slow == ()  # all answers are in
    assert result.known.snapshot.evidence is not None
    assert result.known.snapshot.evidence.slow is not None
    assert half.known.snapshot.evidence is not None
    assert half.known.snapshot.evidence.slow is not None
    assert (
        result.known.snapshot.evidence.slow[1] < half.known.snapshot.evidence.slow[1] ** 1.5
    )  # twice the samples, not the later half alone


def test_the_certificate_counts_who_never_answers() -> None:
    clock, forever = Clock(), threading.Event()

    def measure(arm: str, seed: int) -> float:
        if seed % 10 == 0:
            clock.jump(0.1)
            forever.wait(HANG)
        return random.Random(seed).random()

    result = drive(measure, 60, arms=ARMS, seed=3, lease=0.1, clock=clock)
    forever.set()
    answered = result.certificate.answered
    assert answered is not None
    assert answered.asked - answered.given_up == result.samples == 60
    assert answered.given_up > 0
    assert "were never answered; the estimates cover only the answered samples" in str(result.certificate)


def test_an_arm_without_more_samples_leaves_no_answer_out() -> None:
    result = eq.estimate({"short": iter([1.0, 2.0, 3.0]), "long": itertools.count(1.0)}, 60)
    assert result.counts["short"] == 3
    answered = result.certificate.answered
    assert answered is not None
    assert answered.given_up == 0
    assert answered.withdrawn > 0
    assert "never answered" not in str(result.certificate)


# ---- kinds of samplers


def test_a_function_of_the_arm() -> None:
    asked: list[str] = []

    def measure(arm: str) -> float:
        asked.append(arm)
        return float(len(asked))

    result = eq.estimate(measure, budget=50, arms=ARMS)
    assert dict(result.counts) == Counter(asked)
    for arm in ARMS:
        assert result.means[arm] == pytest.approx(np.mean([i + 1 for i, name in enumerate(asked) if name == arm]))


def test_a_mapping_of_functions() -> None:
    result = eq.estimate({"one": lambda: 1, "two": lambda: np.float32(2)}, budget=20)
    assert dict(result.means) == {"one": 1.0, "two": 2.0}
    assert result.samples == 20


@pytest.mark.filterwarnings("error")
def test_no_arms_are_refused_without_a_warning() -> None:
    with pytest.raises(ValueError, match="arms must have at least one name, got an empty list"):
        eq.estimate(lambda arm: 1.0, arms=[], budget=10)


def test_numbered_arms() -> None:
    assert list(eq.estimate(lambda arm: arm, budget=20, arms=3).means.values()) == [0.0, 1.0, 2.0]


def test_vectorised_functions() -> None:
    sizes: list[int] = []

    def measure(arm: str, size: int) -> Any:
        sizes.append(size)
        return np.random.default_rng(len(sizes)).normal(0, 4 if arm == "rough" else 1, size)

    result = eq.estimate(measure, budget=10_000, arms=ARMS)
    assert sum(sizes) == result.samples == 10_000
    assert len(sizes) < 1000
    # The oracle gives the rough arm 16 in 17.
    assert result.counts["rough"] == pytest.approx(10_000 * 16 / 17, rel=0.02)
    rng = np.random.default_rng(1)
    assert eq.estimate({"a": rng.normal, "b": functools.partial(rng.normal, 3)}, budget=1000).samples == 1000


def test_awaited_functions_are_in_flight_together() -> None:
    flying, most, all_eight = 0, 0, asyncio.Event()

    async def measure(arm: str) -> float:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        if most == 8:
            all_eight.set()
        await asyncio.wait_for(all_eight.wait(), HANG)
        flying -= 1
        return 1.0

    assert eq.estimate(measure, budget=60, arms=ARMS, executor=8).samples == 60
    assert most == 8

    class Device:
        async def __call__(self) -> float:
            return 2.0

    assert eq.estimate({"a": Device(), "b": functools.partial(measure, "b")}, budget=20).means["a"] == 2.0


def test_awaited_in_a_running_loop() -> None:
    async def measure(arm: str, seed: int) -> float:
        return sample(arm, seed)

    async def main() -> eq.Result:
        return eq.estimate(measure, budget=30, arms=ARMS)

    assert asyncio.run(main()).samples == 30


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("kind", ["plain", "threads", "awaited", "awaited inside"])
def test_a_sampler_that_exits_ends_the_study_and_not_the_loop(error: type[BaseException], kind: str) -> None:
    """Others are in flight and never answer; they are given up. The exception is the sampler's own."""
    calls = Counter[str]()

    def measure(arm: str) -> float:
        calls[arm] += 1
        if calls.total() == 5:
            raise error("enough")
        return 1.0

    async def exits(arm: str) -> float:
        return measure(arm)

    async def awaited(arm: str) -> float:
        if calls.total() == 3:
            calls["waits"] += 1
            await asyncio.Event().wait()
        return await (asyncio.ensure_future(exits(arm)) if kind == "awaited inside" else exits(arm))

    found: list[BaseException] = []

    def run() -> None:
        try:
            sampler: Any = awaited if kind.startswith("awaited") else measure
            eq.estimate(sampler, budget=60, arms=ARMS, executor=3 if kind == "threads" else None)
        except BaseException as raised:
            found.append(raised)

    # In a thread that does not outlive the test, where it hangs.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANG)
    assert [(type(each), each.args) for each in found] == [(error, ("enough",))]
    assert "equipoise-loop" not in [each.name for each in threading.enumerate()]


def test_iterables_and_lists() -> None:
    def stream() -> Iterator[float]:
        yield from [1.0, 2.0, 3.0, 4.0, 5.0]

    result = eq.estimate({"stream": stream(), "list": [1, 1, 4], "array": np.arange(4.0)}, budget=100)
    assert dict(result.counts) == {"stream": 5, "list": 3, "array": 4}
    assert dict(result.means) == {"stream": 3.0, "list": 2.0, "array": 1.5}
    on_threads = eq.estimate({"stream": stream(), "list": [1, 1, 4]}, budget=100, executor=3)
    assert dict(on_threads.counts) == {"stream": 5, "list": 3}
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(eq.EquipoiseError, match="executor must be None or a number of threads if an arm"),
    ):
        eq.estimate({"stream": stream()}, budget=100, executor=pool)


def test_lists_alone_need_no_budget() -> None:
    assert eq.estimate({"a": [1, 2], "b": [3, 5, 6]}).samples == 5


# ---- populations


@pytest.mark.parametrize("executor", [None, 4])
def test_populations_are_drawn_without_replacement(executor: Any) -> None:
    drawn: defaultdict[str, list[int]] = defaultdict(list)

    def measure(arm: str, item: int) -> float:
        drawn[arm].append(item)
        return float(item % 7)

    populations = {"few": [3, 1, 2], "many": range(100, 400), "array": np.arange(50)}
    result = eq.estimate(measure, budget=150, populations=populations, seed=5, executor=executor)
    assert result.samples == 150
    assert sorted(drawn["few"]) == [1, 2, 3]
    for arm, items in drawn.items():
        assert len(set(items)) == len(items) == result.counts[arm]
        assert set(items) <= set(populations[arm])
    # The order is one of chance, not that of the list.
    assert drawn["many"] != sorted(drawn["many"])
    assert result.standard_errors["few"] == 0
    n, size = result.counts["many"], 300
    expected = math.sqrt(result.variances["many"] / n * (1 - n / size))
    assert result.plain_errors["many"] == pytest.approx(expected, rel=1e-12)


def test_a_population_that_is_used_up_is_known_exactly() -> None:
    result = eq.estimate(lambda item: item * item, populations={"a": 5, "b": [2, 3]}, budget=100)
    assert dict(result.counts) == {"a": 5, "b": 2}
    assert dict(result.means) == pytest.approx({"a": 6.0, "b": 6.5}, rel=1e-15)
    assert result.loss == result.oracle_loss == 0


def test_the_oracle_of_finite_populations() -> None:
    """Variances 4 and 1, sizes 20 and 1000, 50 samples: v (1/T - 1/N) = L for both, with the T adding up to 50."""
    result = result_of_moments([20, 30], [4.0, 1.0], [0.0, 0.0], populations=[20, 1000])
    found = result.oracle_loss
    pulls = [4 / (found + 4 / 20), 1 / (found + 1 / 1000)]
    assert sum(pulls) == pytest.approx(50)
    assert result.uniform_loss == pytest.approx(max(4 * (1 / 25 - 1 / 20), 1 * (1 / 25 - 1 / 1000)))
    assert result.loss == pytest.approx(1 / 30 * (1 - 30 / 1000))


def test_vectorised_items() -> None:
    def measure(items: Any, size: int) -> Any:
        assert len(items) == size
        return np.asarray(items) % 2

    result = eq.estimate(measure, populations={"a": np.arange(1000), "b": list(range(10))}, budget=400)
    assert result.counts["b"] <= 10
    assert result.samples == 400


# ---- reasons to stop


def test_precision() -> None:
    result = eq.estimate(sample, arms=ARMS, precision=0.5, seed=1)
    assert (result.intervals(0.95).half_widths <= 0.5).all()
    assert result.intervals().kinds == ("fixed-width", "fixed-width")
    # z²σ²/h² is 321 where z = 2.24, for two arms; the rest is chance, as the deviation is estimated.
    assert result.counts["rough"] == pytest.approx(327, rel=0.2)
    anytime = eq.estimate(sample, arms=ARMS, precision=0.5, seed=1, interval="anytime")
    assert anytime.intervals().kind == "asymptotic"
    # A sequence needs 693.
    assert enough(0.5 / 4, 2) == 693
    assert anytime.counts["rough"] == pytest.approx(693, rel=0.2)
    finer = eq.estimate(sample, arms=ARMS, precision=0.5, level=0.999, seed=1)
    assert finer.samples > 1.5 * result.samples


def test_precision_with_a_budget_as_cap() -> None:
    assert eq.estimate(sample, arms=ARMS, precision=0.001, budget=300, seed=1).samples == 300


def test_the_result_says_whether_the_precision_was_reached() -> None:
    found = eq.estimate(sample, arms=ARMS, precision=0.5, seed=1)
    assert found.reached is True
    assert json.loads(found.to_json())["reached"] is True
    assert repr(found).startswith("✓ Every mean is known to ±0.5 (")
    short = eq.estimate(sample, arms=ARMS, precision={"calm": "7%", "rough": "7%"}, budget=150, seed=1)
    assert short.reached is False
    assert short.to_dict()["reached"] is False
    verdict = "✗ 1 of 2 arms is still wider than ±7% of its mean; "
    assert repr(short).startswith(verdict)
    assert verdict in short._repr_html_()
    several = eq.estimate(sample, arms=ARMS, precision=[0.001, "1%"], budget=300, seed=1)
    assert repr(several).startswith("✗ 2 of 2 arms are still wider than asked for; ")
    nothing = eq.estimate(sample, arms=ARMS, budget=300, seed=1)
    assert nothing.reached is None
    assert nothing.to_dict()["reached"] is None
    # A population that is used up is known, whatever was asked for; a list that is used up is not.
    assert eq.estimate(lambda item: item, populations={"a": [1, 2, 9]}, precision=1e-9).reached is True
    assert eq.estimate({"a": [1, 2, 9]}, precision=1e-9).reached is False
    # It survives what a result goes through.
    assert pickle.loads(pickle.dumps(short)).reached is False


def test_relative_precision_and_one_for_each_arm() -> None:
    result = eq.estimate(sample, arms=ARMS, precision="3%", seed=1)
    assert (result.intervals(0.95).half_widths <= 0.03 * np.abs(result.means.array)).all()
    result = eq.estimate(sample, arms=ARMS, precision={"calm": 0.2, "rough": "20%"}, seed=1)
    half = result.intervals(0.95).half_widths
    assert half[0] <= 0.2
    assert half[1] <= 2.1
    assert half[1] > 0.5  # it was not asked for more than it needed


SIZES = {"one": 1.0, "ten": 10.0, "hundred": 100.0}


def sized(arm: str, seed: int) -> float:
    """A sample that varies as much as its mean is large."""
    return random.Random(seed).gauss(SIZES[arm], SIZES[arm])


def alike(arm: str, seed: int) -> float:
    """A sample that varies as much for every arm."""
    return random.Random(seed).gauss(5, 1)


def test_a_share_of_the_mean_is_made_small_for_all_arms_together() -> None:
    found = eq.estimate(sized, 1500, arms=list(SIZES), precision="2%", seed=1)
    assert found.counts.array.tolist() == pytest.approx([500] * 3, rel=0.2)
    assert found.objective.weights == pytest.approx([2500 / size**2 for size in SIZES.values()], rel=0.3)
    assert f"Least precise relative to its target: {found.worst}, ±" in repr(found)
    text = str(found.certificate)
    assert text.startswith(f"Least precise relative to its target: {found.worst}, ±")
    assert "the largest standard error" not in text  # relative to targets, it has no unit
    # Who gives weights has them; half-widths that are all the same need none.
    own = eq.estimate(sized, 1500, arms=list(SIZES), precision="2%", seed=1, weights=[1, 1, 1])
    assert own.counts["hundred"] > 1200
    assert "by weighted error" in str(own.certificate)
    assert eq.estimate(sized, 300, arms=list(SIZES), precision=0.1, seed=1).objective.plain
    even = eq.estimate(sized, 300, arms=list(SIZES), precision="2%", seed=1, strategy="uniform")
    assert (even.counts.array.tolist(), even.objective.plain) == ([100] * 3, True)
    several = eq.estimate(sized, 1500, arms=list(SIZES), precision=[0.02, 0.2, 2], seed=1)
    assert several.counts.array.tolist() == pytest.approx([500] * 3, rel=0.2)


def test_every_arm_has_an_interval_before_a_share_of_the_mean_is_looked_for() -> None:
    """A mean of a hundred with a standard deviation of 1 is known to 2% with the first interval, of 11 samples."""

    def measure(arm: str, seed: int) -> float:
        return random.Random(seed).gauss(SIZES[arm], 1)

    found = eq.estimate(measure, 600, arms=list(SIZES), precision="2%", seed=1)
    assert np.isfinite(found.intervals(0.95).half_widths).all()
    assert 11 <= found.counts["hundred"] <= 13  # depending on when somebody looks
    assert found.counts["one"] > 500
    few = eq.estimate(measure, 110, arms=list(SIZES), precision="2%", seed=1)
    assert few.counts["hundred"] < 11  # 20 of each would be more than half of the budget


@pytest.mark.parametrize("spread", [0.01, 1, 100])
def test_an_arm_that_cannot_be_told_from_zero_has_its_even_share_and_no_more(spread: float) -> None:
    """However much it varies. `greedy` plans with the variances as they are seen."""
    laws = {"zero": (0, spread), "calm": (2, 1), "rough": (1, 3), "calmer": (1.5, 0.5)}

    def measure(arm: str, seed: int) -> float:
        return random.Random(seed).gauss(*laws[arm])

    for budget in (600, 3000):
        found = eq.estimate(measure, budget, arms=list(laws), precision="0.1%", seed=3, strategy="greedy")
        assert found.counts["zero"] == pytest.approx(budget / 4, rel=0.25)


def test_an_arm_that_cannot_be_told_from_zero_leaves_the_default_its_samples() -> None:
    laws = {"zero": (0, 100), "b": (1, 1), "c": (1, 1)}

    def measure(arm: str, seed: int) -> float:
        return random.Random(seed).gauss(*laws[arm])

    for budget in (600, 3000):
        found = eq.estimate(measure, budget, arms=list(laws), precision="1%", seed=3)
        assert found.counts["zero"] < 1.2 * budget / 3


@pytest.mark.parametrize(("kind", "few"), [(list, [3.0]), (iter, [3.0]), (iter, [])])
def test_an_arm_of_one_sample_does_not_turn_the_weights_off(kind: Any, few: list[float]) -> None:
    rng = random.Random(5)
    arms = {arm: [rng.gauss(size, size) for _ in range(2000)] for arm, size in SIZES.items()} | {"few": kind(few)}
    found = eq.estimate(arms, 600, precision="5%", strategy="greedy")
    assert found.counts.array[:3].tolist() == pytest.approx([200] * 3, rel=0.25)
    assert found.known.by_precision
    assert found.worst == "few"


def test_a_report_judges_as_the_run_did_with_an_arm_of_one_sample(where: str) -> None:
    rng = random.Random(5)
    arms = {arm: [rng.gauss(size, size) for _ in range(2000)] for arm, size in SIZES.items()} | {"few": [3.0]}
    found = eq.estimate(arms, 600, precision="5%", strategy="greedy", store=where)
    read = report.read(where).result
    assert read.known.by_precision is found.known.by_precision is True
    assert read.objective == found.objective
    assert read.worst == found.worst == "few"
    assert kinds(where).count("weights") > 5


def test_a_report_judges_as_the_run_did_from_the_beginning(where: str) -> None:
    """Also where no weights were ever set."""
    found = eq.estimate({arm: [size] for arm, size in SIZES.items()}, precision="5%", store=where)
    read = report.read(where).result
    assert read.known.by_precision is found.known.by_precision is True
    assert read.objective == found.objective
    assert "weights" not in kinds(where)


@pytest.mark.parametrize("arms", [200, 200_000])
def test_the_first_rounds_look_at_all_arms_a_few_times_only(arms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One look at the beginning, then one for every 100 samples (half a round) and one for each of 32 sets of weights.

    A look takes time for every arm: one a sample would make 200,000 arms slow. benchmarks/estimate.py has the times.
    """
    looks = samples = 0
    look = arm_intervals.reached_by_arm

    def counted(known: Known) -> Any:
        nonlocal looks
        looks += 1
        return look(known)

    def measure(arm: int) -> float:
        nonlocal samples
        samples += 1
        if samples > 1000:
            raise OSError("that will do")
        return 10.0 + arm % 7

    monkeypatch.setattr(policy, "reached_by_arm", counted)
    with pytest.raises(eq.EquipoiseError, match="that will do"):
        eq.estimate(measure, arms=arms, precision="5%")
    assert 1 <= looks <= 1 + 1000 / 100 + 32


def test_weights_are_set_at_fixed_numbers_of_samples(where: str) -> None:
    """A run that was broken off does what one without a break does, to the bit."""
    whole = eq.estimate(sized, 900, arms=list(SIZES), precision="2%", seed=1)
    for budget in (130, 301, 302, 640, 900):
        parts = eq.estimate(sized, budget, arms=list(SIZES), precision="2%", seed=1, store=where)
    assert dict(parts.means) == dict(whole.means)
    assert parts.objective == whole.objective
    assert kinds(where).count("weights") > 10
    weights = np.array(whole.objective.weights)
    assert replay(where).study.objective.weights == pytest.approx(weights / weights.max(), rel=0.3)
    read = report.read(where).result
    assert (read.worst, read.loss, str(read.certificate)) == (parts.worst, parts.loss, str(parts.certificate))


def test_weights_are_those_of_what_is_asked_for_now(where: str) -> None:
    """A finer precision of a study that goes on, and then none."""
    options: dict[str, Any] = {"arms": list(SIZES), "seed": 1, "store": where}
    coarse = eq.estimate(sized, 300, precision="5%", **options)
    finer = eq.estimate(sized, 300, precision="1%", **options)
    assert dict(finer.means) == dict(coarse.means)
    assert math.sqrt(finer.loss) == pytest.approx(5 * math.sqrt(coarse.loss))
    worst = finer.worst
    assert math.sqrt(finer.loss) == pytest.approx(finer.plain_errors[worst] / (0.01 * abs(finer.means[worst])))
    done = eq.estimate(sized, 600, **options)
    assert done.objective.plain
    assert done.counts["hundred"] > 350  # absolute errors from then on
    assert replay(where).study.objective.plain


@pytest.mark.parametrize("executor", [None, 2])
def test_another_precision_has_its_weights_at_once(where: str, executor: int | None) -> None:
    """A tenth more samples, all for the arm that is now to be known well; they are set once, whatever is broken off."""
    options: dict[str, Any] = {"arms": ["a", "b"], "seed": 1, "store": where, "executor": executor, "in_flight": 1}
    first = eq.estimate(alike, 1020, precision={"a": 0.005, "b": 0.05}, **options)
    assert first.counts["b"] < 100
    for budget in (1021, 1060, 1120):
        found = eq.estimate(alike, budget, precision={"a": 0.05, "b": 0.005}, **options)
    assert found.counts["b"] >= first.counts["b"] + 99
    changes = [kind for kind in kinds(where) if kind in ("budget", "goal", "weights")]
    assert changes[-6:] == ["weights", "budget", "goal", "weights", "budget", "budget"]


def test_weights_of_another_precision_are_the_same_after_a_break(tmp_path: Path) -> None:
    options: dict[str, Any] = {"arms": list(SIZES), "seed": 1}
    studies = []
    for name, budgets in (("whole", [900]), ("parts", [500, 501, 640, 900])):
        store = tmp_path / f"{name}.db"
        eq.estimate(sized, 500, precision=[0.02, 0.2, 1], store=store, **options)
        for budget in budgets:
            eq.estimate(sized, budget, precision="1%", store=store, **options)
        studies.append(replay(store).study)
    assert not differences(*studies)


def test_a_mean_of_zero_has_no_share() -> None:
    """Errors are then judged as they are."""
    found = eq.estimate({"none": [0.0] * 40, "some": [1.0, 3.0] * 20}, precision="1%")
    assert found.objective.plain
    assert found.reached is False
    assert "relative to its target" not in str(found.certificate)


def test_an_arm_that_is_known_is_left_alone() -> None:
    """A rough arm that need not be known well is not sampled on while a calm one is."""
    result = eq.estimate(sample, arms=ARMS, precision=[0.05, 2.0], seed=2)
    assert result.counts["rough"] < 150
    assert result.counts["calm"] > 1000


def test_precision_on_threads_and_with_populations() -> None:
    result = eq.estimate(sample, arms=ARMS, precision=0.5, seed=1, executor=4)
    assert result.reached is True
    # Samples that were in flight when their arm was stopped may have widened its interval.
    assert (result.intervals(0.95).half_widths <= 0.6).all()
    small = eq.estimate(lambda item: item % 7, populations={"a": 30, "b": 100_000}, precision=0.2, seed=3)
    # Variances of 4; of 30 items nearly all are needed, and no more than all.
    assert 27 <= small.counts["a"] <= 30
    assert small.counts["b"] == pytest.approx((2.24 / 0.1) ** 2, rel=0.1)
    sizes = {"a": 30, "b": 100_000}
    small = eq.estimate(lambda item: item % 7, populations=sizes, precision=0.2, seed=3, interval="anytime")
    assert small.counts["b"] == pytest.approx(enough(0.2 / 2, 2), rel=0.1)


def test_seconds() -> None:
    """By a clock that each sample moves on by a second; of three threads, each may have two chunks of 5 in flight."""
    clock, lock = Clock(), threading.Lock()

    def measure(arm: str, seed: int) -> float:
        with lock:
            clock.now += 1
        return sample(arm, seed)

    assert drive(measure, arms=ARMS, max_seconds=100, clock=clock).samples == 100
    assert 100 <= drive(measure, arms=ARMS, max_seconds=100, clock=clock, executor=3).samples < 100 + 3 * 2 * 5
    # By the clock on the wall: nothing else would end this.
    assert eq.estimate(sample, arms=ARMS, max_seconds=0.05).samples >= 0


def test_nothing_to_stop_at() -> None:
    with pytest.raises(ValueError, match=r"^no limit was given; set budget, precision or max_seconds$"):
        eq.estimate(sample, arms=ARMS)


# ---- seeds


def test_the_same_study_wherever_one_is_in_flight() -> None:
    async def awaited(arm: str, seed: int) -> float:
        return sample(arm, seed)

    def vectorised(arm: str, size: int, seed: Any) -> Any:
        return np.array([sample(arm, int(s)) for s in seed])

    here = brief(eq.estimate(sample, budget=100, arms=ARMS, seed=9))
    assert brief(eq.estimate(sample, budget=100, arms=ARMS, seed=10)) != here
    assert brief(eq.estimate(sample, budget=100, arms=ARMS, seed=9, executor=4, in_flight=1)) == here
    assert brief(eq.estimate(awaited, budget=100, arms=ARMS, seed=9, executor=1)) == here
    assert brief(eq.estimate(vectorised, budget=100, arms=ARMS, seed=9, in_flight=1)) == here
    by_arm = {arm: functools.partial(sample, arm) for arm in ARMS}
    assert brief(eq.estimate(by_arm, budget=100, seed=9)) == here


@pytest.mark.parametrize("executor", [None, 2, 7])
def test_each_arms_samples_are_the_same_on_every_executor(executor: Any) -> None:
    """Whatever the counts are, the values are those of the arm's first samples."""
    seen: defaultdict[str, list[int]] = defaultdict(list)

    def measure(arm: str, seed: int) -> float:
        seen[arm].append(seed)
        return sample(arm, seed)

    eq.estimate(measure, budget=300, arms=ARMS, seed=4, executor=executor)
    from equipoise.run import seeds

    for arm, found in seen.items():
        assert sorted(found) == sorted(seeds.seed(seeds.base(4, arm), i) for i in range(len(found)))


# ---- executors


def test_threads_are_kept_full() -> None:
    """The first sample ends when a hundred others have: in waves, they would wait for it."""
    lock, calls, enough = threading.Lock(), 0, threading.Event()

    def measure(arm: str) -> float:
        nonlocal calls
        with lock:
            calls += 1
            mine = calls
        if mine == 1:
            assert enough.wait(HANG)
        if mine == 101:
            enough.set()
        return 1.0

    assert eq.estimate(measure, budget=150, arms=ARMS, executor=2).samples == 150


def test_short_samples_go_in_chunks() -> None:
    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *args: Any, **kwargs: Any) -> Any:
            Counting.submitted += 1
            return super().submit(*args, **kwargs)

    with Counting(2) as pool:
        result = eq.estimate(sample, budget=20_000, arms=ARMS, executor=pool, seed=1)
    assert result.samples == 20_000
    assert Counting.submitted < 2000


def test_no_more_in_flight_than_wanted() -> None:
    flying, most, lock, all_three = 0, 0, threading.Lock(), threading.Event()

    def measure(arm: str) -> float:
        nonlocal flying, most
        with lock:
            flying += 1
            most = max(most, flying)
            if most == 3:
                all_three.set()
        assert all_three.wait(HANG)
        with lock:
            flying -= 1
        return 1.0

    eq.estimate(measure, budget=60, arms=ARMS, executor=8, in_flight=3)
    assert most == 3


# ---- a guess


def test_a_guess_decides_who_is_first() -> None:
    asked: list[str] = []

    def measure(arm: str, seed: int) -> float:
        asked.append(arm)
        return sample(arm, seed)

    eq.estimate(measure, budget=1000, arms=ARMS, seed=1, guess={"calm": 9.0, "rough": 1.0})
    assert 17 <= Counter(asked[:20])["calm"] <= 19
    # A guess as wrong as this one costs a tenth at most.
    assert Counter(asked)["rough"] > 880
    # A small budget gives a tenth of itself to the guess.
    asked.clear()
    eq.estimate(measure, budget=50, arms=ARMS, seed=1, guess=[1.0, 100.0])
    assert asked[:5] == ["rough"] * 5


# ---- a store


def test_a_store_is_the_whole_study(where: str) -> None:
    result = eq.estimate(sample, budget=300, arms=ARMS, seed=1, store=where)
    assert brief(replay(where).study.result()) == brief(result)
    lines = events(where)
    assert Counter(line.kind for line in lines) == {"ask": 300, "tell": 300}
    assert all(line.seconds is not None and line.seconds > 0 for line in lines if line.kind == "tell")


@pytest.mark.parametrize("executor", [None, 4])
def test_a_larger_budget_goes_on(where: str, executor: Any) -> None:
    eq.estimate(sample, budget=100, arms=ARMS, seed=1, store=where, executor=executor)
    assert eq.estimate(sample, budget=100, arms=ARMS, store=where, executor=executor).samples == 100
    result = eq.estimate(sample, budget=250, arms=ARMS, store=where, executor=executor)
    assert result.samples == 250
    if executor is None:
        assert brief(result) == brief(eq.estimate(sample, budget=250, arms=ARMS, seed=1))


def test_a_finer_precision_goes_on(where: str) -> None:
    coarse = eq.estimate(sample, precision=1.0, arms=ARMS, seed=1, store=where)
    fine = eq.estimate(sample, precision=0.5, arms=ARMS, store=where)
    assert fine.samples > 2 * coarse.samples
    assert (fine.intervals(0.95).half_widths <= 0.5).all()
    study = replay(where).study
    assert set(study.retired) == set(ARMS)
    assert brief(study.result()) == brief(fine)


def test_interrupted_anywhere_it_goes_on_as_if_it_had_not_been(where: str) -> None:
    """With one in flight a study that was interrupted over and over is the study that was not, to the bit."""
    calls = 0

    def measure(arm: str, seed: int) -> float:
        nonlocal calls
        calls += 1
        if calls % 17 == 0:
            raise KeyboardInterrupt
        return sample(arm, seed)

    for _ in range(100):
        try:
            result = eq.estimate(measure, budget=200, arms=ARMS, seed=3, store=where)
            break
        except KeyboardInterrupt:
            continue
    assert calls == 212
    assert brief(result) == brief(eq.estimate(sample, budget=200, arms=ARMS, seed=3))


def test_populations_go_on(where: str) -> None:
    drawn: list[int] = []

    def measure(item: int) -> float:
        drawn.append(item)
        if len(drawn) == 20:
            raise KeyboardInterrupt
        return float(item)

    with pytest.raises(KeyboardInterrupt):
        eq.estimate(measure, populations={"a": 30, "b": 30}, budget=50, store=where)
    result = eq.estimate(measure, populations={"a": 30, "b": 30}, budget=1000, store=where)
    assert dict(result.means) == pytest.approx({"a": 14.5, "b": 14.5})
    assert len(drawn) == 61
    with pytest.raises(
        ValueError, match=r"populations must be \(30, 30\) to continue the study in the store, got \(30, 31\)"
    ):
        eq.estimate(measure, populations={"a": 30, "b": 31}, budget=1000, store=where)


# ---- progress


def test_progress_tells_a_function() -> None:
    told: list[eq.Progress] = []
    eq.estimate(sample, budget=3000, arms=ARMS, seed=1, progress=told.append)
    last = told[-1]
    assert (last.samples, last.spent, last.budget, last.in_flight, last.seconds_left) == (3000, 3000, 3000, 0, 0)
    assert last.worst == "calm"  # as precise by standard error, but its interval is wider: it has few samples
    assert last.error == pytest.approx(4 / math.sqrt(2800), rel=0.2)
    assert [p.samples for p in told] == sorted(p.samples for p in told)


def test_progress_shows_a_bar_when_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    eq.estimate(sample, budget=200, arms=ARMS, progress=True)
    assert "samples" in capsys.readouterr().err
    eq.estimate(sample, budget=200, arms=ARMS)
    assert capsys.readouterr().err == ""


def test_time_left() -> None:
    """Half of the samples are in after 250 seconds, at one a second: it takes as long again."""
    told: list[eq.Progress] = []
    clock = Clock()

    def measure(arm: str, seed: int) -> float:
        clock.now += 1
        return sample(arm, seed)

    drive(measure, 500, arms=ARMS, clock=clock, progress=told.append)
    (middle,) = (p for p in told if p.samples == 250)
    assert (middle.seconds, middle.seconds_left) == (250, 250)


# ---- what is refused


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: eq.estimate(sample, budget=10),
            r"one sampler for all arms needs their names, as in arms=\['a', 'b'\]",
        ),
        (
            lambda: eq.estimate(THREE, budget=10),
            "samplers must be a function of an arm or a mapping from arms to functions, got 3",
        ),
        (lambda: eq.estimate({}, budget=10), "samplers must have at least one arm"),
        (
            lambda: eq.estimate({"a": 5}, budget=10),
            "sampler of arm 'a' must be a function or an iterable of samples, got 5",
        ),
        (
            lambda: eq.estimate({"a": "text"}, budget=10),
            "sampler of arm 'a' must be a function or an iterable of samples, got 'text'",
        ),
        (
            lambda: eq.estimate({"a": np.array(5.0)}, 10),
            r"^the sampler of arm 'a' must be a function or an iterable of samples, got array\(5\.\)$",
        ),
        (
            lambda: eq.estimate({"a": lambda x: 1}, budget=10),
            "a sampler must accept no arguments .* which requires 1 argument$",
        ),
        (
            lambda: eq.estimate(lambda: 1, budget=10, arms=["a"]),
            "a sampler must accept the arm's name .*, got <lambda>, which takes no arguments$",
        ),
        (
            lambda: eq.estimate(sample, 10, arms=ARMS, store=3),  # type: ignore[arg-type]
            "^store must be a path or a URL, got 3$",
        ),
        (
            lambda: eq.estimate(sample, 10, arms=ARMS, progress="x"),  # type: ignore[arg-type]
            "^progress must be True, False, None or a function, got 'x'$",
        ),
        (lambda: eq.estimate(sample, 10, arms="ab"), "arms must be a list of names or the number of arms, got 'ab'"),
        (lambda: eq.estimate({"a": max}, 10, arms=["b"]), r"arms must be those of the samplers, \['a'\], got \['b'\]"),
        (lambda: eq.estimate(sample, arms=ARMS, precision=-1), "precision.*-1"),
        (lambda: eq.estimate(sample, arms=ARMS, precision="x%"), "precision.*'x%'"),
        (lambda: eq.estimate(sample, arms=ARMS, precision=[1]), "must have one value for each of the 2 arms, got 1"),
        (lambda: eq.estimate(sample, arms=ARMS, precision={"calm": 1}), "got none for 'rough'"),
        (
            lambda: eq.estimate(sample, arms=ARMS, precision=1, level=95),
            "level must be strictly between 0 and 1, got 95",
        ),
        (lambda: eq.estimate(sample, 20, arms=ARMS, level=1.5), "level must be strictly between 0 and 1, got 1.5"),
        (lambda: eq.estimate(sample, 10, arms=ARMS, lease=0), "lease must be a positive number of seconds, got 0"),
        (lambda: eq.estimate(sample, 10, arms=ARMS, retries=-1), "retries must be a non-negative integer, got -1"),
        (
            lambda: eq.estimate(sample, 10, arms=ARMS, executor="many"),
            "executor must be a number of threads, .* got 'many'",
        ),
        (lambda: eq.estimate(sample, 10, arms=ARMS, executor=0), "executor must be a positive integer, got 0"),
        (
            lambda: eq.estimate(sample, 10, populations={"a": []}),
            "the population of arm 'a' must have at least one item, got none",
        ),
        (
            lambda: eq.estimate(sample, 10, populations={"a": 0}),
            "the population of arm 'a' must be a positive integer, got 0",
        ),
        (lambda: eq.estimate({"a": [1], "b": []}, 10), r"^arm 'b' must have at least one sample, got \[\]$"),
        (
            lambda: eq.estimate({"a": np.zeros(0)}, 10),
            r"^arm 'a' must have at least one sample, got array",
        ),
        (lambda: eq.estimate({"a": set()}, 10), r"^arm 'a' must have at least one sample, got set\(\)$"),
        (
            lambda: eq.estimate({"a": [1.0], "b": iter([2.0])}, 10, store="never.db"),
            "^with a store, every arm must have a function or a list of samples, got a generator or another iterator",
        ),
        (lambda: eq.estimate({"a": {}.values()}, 10), r"^arm 'a' must have at least one sample, got dict_values"),
        (
            lambda: eq.estimate(sample, 10, populations={"a": 2.5}),
            "population of arm 'a' must be a list of items or the number of items, got 2.5",
        ),
        (
            lambda: eq.estimate(sample, 10, populations={"a": np.array(5)}),
            r"population of arm 'a' must be a list of items or the number of items, got array\(5\)",
        ),
        (
            lambda: eq.estimate(sample, 10, arms=ARMS, guess=[1.0]),
            "guess must have one value for each of the 2 arms, got 1",
        ),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        call()


def test_a_generator_that_ends_at_once_closes_its_arm() -> None:
    """How many it has, nobody knows before."""
    result = eq.estimate({"a": iter([]), "b": [1.0, 2.0, 4.0]}, budget=20)
    assert dict(result.counts) == {"a": 0, "b": 3}


@pytest.mark.parametrize("executor", [None, 2])
def test_a_generator_that_raised_has_not_run_out(executor: int | None) -> None:
    """Python ends it all the same, so that a retry would find it empty."""

    def broken() -> Iterator[float]:
        yield 1.0
        yield 2.0
        raise ConnectionError("the line is dead")

    with pytest.raises(eq.EquipoiseError) as raised:
        eq.estimate({"a": broken(), "b": random.random}, 50, retries=1, executor=executor)
    assert str(raised.value).startswith(
        "sampling arm 'a' failed 2 times, the last time: the iterator ended when it raised ConnectionError: the line "
        "is dead; use a function for samples that can fail; "
    )
    assert raised.value.study.retired == ()


def test_an_iterator_that_goes_on_after_an_error_is_read_to_its_end() -> None:
    class Flaky:
        def __init__(self) -> None:
            self.asked = 0

        def __iter__(self) -> Flaky:
            return self

        def __next__(self) -> float:
            self.asked += 1
            if self.asked == 3:
                raise ConnectionError("once")
            if self.asked > 6:
                raise StopIteration
            return 1.0

    assert dict(eq.estimate({"a": Flaky(), "b": [1, 2]}, 50, retries=1).counts) == {"a": 5, "b": 2}


def test_a_refusal_leaves_no_store(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="budget"):
        eq.estimate(sample, budget=3, arms=ARMS, store=tmp_path / "study.db")
    eq.estimate(sample, budget=30, arms=ARMS, strategy="uniform", store=tmp_path / "study.db")


def test_differences_between_live_and_replayed_after_a_run(where: str) -> None:
    """A run on threads with retries: the study in memory and the one of the log agree to the bit."""
    rng = random.Random(1)

    def measure(arm: str, seed: int) -> float:
        if rng.random() < 0.3:
            raise OSError("busy")
        return sample(arm, seed)

    live: list[Any] = []

    def watch(progress: eq.Progress) -> None:
        live.append(progress.result)

    result = eq.estimate(measure, budget=200, arms=ARMS, store=where, executor=3, retries=50, progress=watch)
    assert brief(replay(where).study.result()) == brief(result) == brief(live[-1])
    with Log(where) as log:
        assert differences(log.study, replay(where).study) == []


def test_samplers_that_say_true_and_false() -> None:
    """Python's and NumPy's, one at a time and in arrays, are ones and zeros; and so are items of populations."""
    rng = np.random.default_rng(1)

    def one(seed: int) -> bool:
        return random.Random(seed).random() < 0.3

    def of_numpy(seed: int) -> np.bool_:
        return np.bool_(one(seed))

    def several(size: int) -> Any:
        return rng.random(size) < 0.3

    found = eq.estimate({"one": one, "numpy": of_numpy, "several": several}, budget=90, seed=1)
    assert found.known.recognised
    assert found.interval_kind == "betting"
    assert all(0 < mean < 1 for mean in found.means.array)
    items = {"a": [True, False, True, True], "b": np.array([True] * 30 + [False] * 10)}
    drawn = eq.estimate(lambda item: item, populations=items, seed=1)
    assert drawn.means.array == pytest.approx([0.75, 0.75])
