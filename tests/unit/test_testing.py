"""The public laws, over every registered strategy, and over a third party's."""

from __future__ import annotations

import math
import sys
from unittest import SkipTest

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.strategies import Numbers, Strategy, Support, available, get
from equipoise.testing import StrategyLaws
from tests.pooling import MeanVariance


class TestAuto(StrategyLaws):
    strategy = eq.strategies.Auto()


class TestAutoBinary(StrategyLaws):
    strategy = eq.strategies.Auto()
    support: Support = "binary"


class TestAutoBounded(StrategyLaws):
    strategy = eq.strategies.Auto()
    support: Support = (-3.0, 5.0)


class TestCHAS(StrategyLaws):
    strategy = eq.strategies.CHAS()


class TestCHASBounded(StrategyLaws):
    strategy = eq.strategies.CHAS()
    support: Support = (0.0, 4.0)


class TestBAS(StrategyLaws):
    strategy = eq.strategies.BAS(exploration=0.5)


class TestBASTheorem(StrategyLaws):
    strategy = eq.strategies.BAS(c1=2.0, c2=1.0)


class TestBASBounded(StrategyLaws):
    strategy = eq.strategies.BAS()
    support: Support = (0.0, 1.0)


class TestMCUCB(StrategyLaws):
    strategy = eq.strategies.MCUCB(exploration=0.5)


class TestMCUCBBounded(StrategyLaws):
    strategy = eq.strategies.MCUCB()
    support: Support = (0.0, 4.0)


class TestVarianceUCB(StrategyLaws):
    strategy = eq.strategies.VarianceUCB(c1=2.0, c2=1.0)


class TestGAFSMAX(StrategyLaws):
    strategy = eq.strategies.GAFSMAX()


class TestUniform(StrategyLaws):
    strategy = eq.strategies.EvenSplit()


class TestOracle(StrategyLaws):
    strategy = eq.strategies.Oracle()

    def make(self, arms: int) -> Strategy:
        variances = [float((k + 1) ** 2 % 7) for k in range(arms)]
        return eq.strategies.Oracle(variances)  # type: ignore[no-any-return]


class TestTwoStage(StrategyLaws):
    strategy = eq.strategies.TwoStage(pilot=3)


class TestGreedy(StrategyLaws):
    strategy = eq.strategies.Greedy()


class TestThirdParty(StrategyLaws):
    """A pooled mean, a growing floor and a use of the mean, which no built-in strategy combines."""

    class Odd(MeanVariance):
        warmup = 3
        uses_mean = True
        shift_invariant = False
        scale_invariant = False

        @staticmethod
        def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
            return (m2 + pooled[0] + abs(mean)) / count

        @staticmethod
        def floor(t: float, arms: float, params: Numbers) -> float:
            return t / (4 * arms)

    strategy = Odd()


class TestSeveral(StrategyLaws):
    """Several own and several pooled numbers; shares and the pool see what was pooled before."""

    class Keeper(Strategy):
        own = ("largest", "before", "seen")
        sums = ("variance", "deviation", "arms")
        pooled = ("mean", "spread")

        @staticmethod
        def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
            return m2 / (count - 1) + 0.1 * own[0] + own[1] + pooled[1] / own[2]

        @staticmethod
        def keep(
            sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
        ) -> Numbers:
            return (max(own[0], m2 / count), 0.5 * pooled[0], own[2] + 1)

        @staticmethod
        def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
            return (m2 / count + 0.5 * own[1], abs(m2 / count - pooled[0]), 1.0)

        @staticmethod
        def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
            return (sums[0] / max(arms, 1.0), (pooled[1] + sums[1]) / (2 * max(sums[2], 1.0)))

    strategy = Keeper()


def test_no_registered_strategy_is_left_out() -> None:
    tested = {type(laws.strategy) for laws in StrategyLaws.__subclasses__()}
    # Those that live in the package; a listing of the pages may have registered others.
    here = {get(name) for name in available()}
    ours = {each for each in here if getattr(sys.modules[each.__module__], each.__name__, None) is each}
    assert {each for each in ours if each.__module__.startswith("equipoise.")} <= tested
    assert len(ours) >= 10


def test_without_hypothesis_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    for name in ("equipoise.testing", "equipoise.testing.strategies"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(eq, "testing", raising=False)
    with pytest.raises(ModuleNotFoundError, match="needs hypothesis, which is not installed: pip install hypothesis"):
        eq.testing  # noqa: B018


class Boastful(Strategy):
    """Declares itself invariant, as a strategy does unless it says otherwise, and is not."""

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / count + abs(mean)


@pytest.mark.parametrize("law", ["test_shifted_samples_are_sampled_alike", "test_scaled_samples_are_sampled_alike"])
def test_a_broken_promise_is_found(law: str) -> None:
    laws = StrategyLaws()
    laws.strategy = Boastful()
    # The law without the search for the smallest example, which takes long and nobody reads here.
    run = given(data=st.data())(getattr(StrategyLaws, law).hypothesis.inner_test)
    with pytest.raises(AssertionError, match="is chosen in one study and arm"):
        settings(deadline=None, derandomize=True, phases=[Phase.generate])(run)(laws)


class Jumpy(Strategy):
    """Doubles the variance of an arm whose mean is a whole number."""

    shift_invariant = scale_invariant = False

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / (count - 1) * (2.0 if mean == math.floor(mean) else 1.0)


def test_a_jump_is_found() -> None:
    laws = StrategyLaws()
    laws.strategy = Jumpy()
    law = StrategyLaws.test_variances_are_continuous_in_the_samples.hypothesis.inner_test  # type: ignore[attr-defined]
    run = settings(deadline=None, derandomize=True, phases=[Phase.generate])(given(data=st.data())(law))
    with pytest.raises(AssertionError, match=r"the variance of arm . is .* in one study and"):
        run(laws)
    laws.continuous = False
    with pytest.raises(SkipTest):
        run(laws)
