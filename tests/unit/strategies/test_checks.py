"""A strategy that breaks the contract is refused in one sentence; one that may be right is not."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import equipoise as eq
from equipoise.strategies import (
    Numbers,
    Strategy,
    available,
    check_compiles,
    check_formula,
    check_numbers,
    check_params,
    check_strategy,
    get,
    register,
)

VARIANCE = "@staticmethod\ndef variance(count, mean, m2, pooled, own, params):\n    "
FINE = VARIANCE + "return m2 / count\n"
FLOOR = "@staticmethod\ndef floor(t, arms, params):\n    "
SHARE = "@staticmethod\ndef share(count, mean, m2, pooled, own, params):\n    "
POOL = "@staticmethod\ndef pool(sums, arms, pooled, params):\n    "
KEEP = "@staticmethod\ndef keep(sample, count, mean, m2, pooled, own, params):\n    "
POOLS = "sums = ('a', 'b')\npooled = ('c',)\n"


def made(body: str) -> Strategy:
    """Return a strategy whose class has this body."""
    scope: dict[str, Any] = {"Strategy": Strategy, "math": math}
    exec("class Mine(Strategy):\n" + "\n".join("    " + line for line in body.splitlines()), scope)
    return scope["Mine"]()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("pass", r"Mine must define variance\(count, mean, m2, pooled, own, params\)"),
        (FINE.replace("@staticmethod\n", ""), "Mine.variance must be static; write @staticmethod def variance"),
        ("@staticmethod\ndef variance(count):\n    return 1.0", r"Mine.variance must take the 6 arguments \(count, "),
        (
            FINE + FLOOR.replace(", arms", "") + "return 1.0",
            r"Mine.floor must take the 3 arguments \(t, arms, params\)",
        ),
        (
            FINE + "pool = 'mean'",
            r"Mine.pool must be static; write @staticmethod def pool\(sums, arms, pooled,",
        ),
        (FINE + "own = 'mine'", r"Mine.own must be a tuple of names such as \('first', 'second'\), got 'mine'"),
        (FINE + "pooled = (1,)", r"Mine.pooled must be a tuple of names .* got \(1,\)"),
        (FINE + "own = ('a', 'a')", r"Mine.own must have different names, got \('a', 'a'\)"),
        (
            FINE + "sums = ('a',)",
            r"Mine must declare both sums and pooled or neither, got sums=\('a',\) and",
        ),
        (FINE + POOLS, r"Mine declares pooled, so it must define share\(count, mean, m2, pooled, own, params\)"),
        (FINE + POOLS + SHARE + "return sums", r"so it must define pool\(sums, arms, pooled, params\)"),
        (FINE + "warmup = 1.5", "Mine.warmup must be a non-negative integer, got 1.5"),
        (FINE + "warmup = -1", "Mine.warmup must be a non-negative integer, got -1"),
        (FINE + "def params(self, budget):\n    return ()", r"Mine.params must take the arguments \(self, budget,"),
    ],
)
def test_the_structure(body: str, sentence: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=sentence):
        check_strategy(made(body))


@pytest.mark.parametrize("params", [3.0, ("a",), (math.inf,), (math.nan,), None])
def test_parameters(params: Any) -> None:
    with pytest.raises(eq.EquipoiseError, match=r"Mine.params must return a tuple of finite numbers, got "):
        check_params(made(FINE), params)
    assert check_params(made(FINE), [1, 2]) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (VARIANCE + "return -1.0", "Mine.variance must return a finite number >= 0, got -1 for count=2, mean=0.55"),
        (VARIANCE + "return math.nan", "Mine.variance must return a finite number >= 0, got nan"),
        (VARIANCE + "return math.inf", "Mine.variance must return a finite number >= 0, got inf"),
        # Compiled code divides by zero without an error.
        ("warmup = 1\n" + VARIANCE + "return m2 / (count - 1)", "got nan for count=1, mean=0.3, m2=0"),
        (
            POOLS + FINE + SHARE + "return (1.0, math.nan)\n" + POOL + "return (1.0,)",
            r"Mine.share must return a tuple of 2 finite numbers, a, b, got \(1, nan\) for count=2, .* own=\(0\)",
        ),
        (
            POOLS + FINE + SHARE + "return m2\n" + POOL + "return (1.0,)",
            "Mine.share must return a tuple of 2 finite numbers, a, b, got .*0.125",
        ),
        (
            POOLS + FINE + SHARE + "return (1.0, 2.0)\n" + POOL + "return sums",
            r"Mine.pool must return a tuple of 1 finite number, c, got \(1, 2\) for sums=\(1, 2\) and arms=1",
        ),
        (
            "own = ('a',)\n" + VARIANCE + "return own[0]\n" + KEEP + "return (math.inf,)",
            r"Mine.keep must return a tuple of 1 finite number, a, got \(inf\) for sample=0.3, count=1 and own=\(0\)",
        ),
        ("own = ('a',)\n" + VARIANCE + "return own[0] - 1", r"got -1 for .* own=\(0\)"),
        (FINE + FLOOR + "return math.nan", "Mine.floor must return a number, got nan for t=0"),
    ],
)
def test_numbers_that_are_always_wrong(body: str, sentence: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=sentence):
        check_numbers(made(body), ())


@pytest.mark.parametrize(
    "body",
    [
        VARIANCE + "return -1.0 if count > 2 else 1.0",
        VARIANCE + "return m2 - 1e9",
        VARIANCE + "return mean - 100.0",
        "warmup = 0\n" + VARIANCE + "return 4.0",
        "warmup = 1\n" + VARIANCE + "return min(m2 / (count - 1) if count > 1 else 9.0, 5.0)",
        "own = ('a', 'b')\n" + VARIANCE + "return own[1]\n" + KEEP + "return (own[1], m2 / count)",
        "own = ('variance',)\n" + VARIANCE + "return 1 / own[0]",
        POOLS + VARIANCE + "return m2 / pooled[0]\n" + SHARE + "return (m2, -m2)\n" + POOL + "return (-sums[1],)",
        FINE + FLOOR + "return math.inf",
        FINE + FLOOR + "return -1.0",
        # What raises an error as Python need not do so when it is compiled.
        VARIANCE + "return max(math.log(m2 - m2), 1.0)",
    ],
)
def test_numbers_that_may_be_right(body: str) -> None:
    check_strategy(made(body))
    check_numbers(made(body), ())


def test_numbers_are_tried_within_the_support() -> None:
    strategy = made(VARIANCE + "return 1.0 if mean > 99 else -1.0")
    check_numbers(strategy, (), (100.0, 101.0))
    with pytest.raises(eq.EquipoiseError, match=r"got -1 for count=2, mean=0.5, m2=0.5"):
        check_numbers(strategy, (), "binary")


def test_a_formula_at_given_moments() -> None:
    strategy = made(VARIANCE + "return m2 / count - 1e9")
    check_formula(strategy, (0.0,), 2.0, 0.0, 1e12, ())
    with pytest.raises(eq.EquipoiseError, match=r"Mine.variance must return a finite number >= 0, got -1e\+09 for"):
        check_formula(strategy, (0.0,), 2.0, 0.0, 1.0, ())
    with pytest.raises(eq.EquipoiseError, match="got nan for count=1"):
        check_formula(eq.strategies.Greedy(), (5.0,), 1.0, 0.0, 0.0, ())
    # With nothing kept yet, and for a strategy that cannot tell from moments.
    for keeping in (eq.strategies.Auto(), eq.strategies.TwoStage()):
        check_formula(keeping, keeping.params(100, 2, None), 50.0, 1.0, 20.0, (0.0,) * len(keeping.own))
    blind = made("own = ('a',)\n" + VARIANCE + "return own[0]\n" + KEEP + "return (sample,)")
    check_formula(blind, (), 9.0, 0.0, 1.0, (0.0,))
    check_formula(eq.strategies.Oracle(), (), 9.0, 0.0, 1.0, (4.0,))
    with pytest.raises(eq.EquipoiseError, match="got inf"):
        check_formula(eq.strategies.Oracle(), (), 9.0, 0.0, 1.0, (math.inf,))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (VARIANCE + "return params[2]", "tuple index out of range"),
        (VARIANCE + "return bonus(count)", "NameError: name 'bonus' is not defined"),
        (VARIANCE + "return 'much'", r"it returns Literal\[str\]\(much\), not a number"),
        (VARIANCE + "pass", "it returns none, not a number"),
    ],
)
def test_what_does_not_compile(body: str, reason: str) -> None:
    sentence = (
        f"^Mine.variance cannot be compiled: {reason}; it may use numbers, tuples of them, math and functions compiled "
        "with Numba; the lengths of its tuples are pooled 1, own 1, params 1$"
    )
    with pytest.raises(eq.EquipoiseError, match=sentence):
        check_compiles(made(body), ())


def test_functions_that_are_not_used_need_not_compile() -> None:
    check_compiles(made(FINE + KEEP + "return open\n" + SHARE + "return open\n" + POOL + "return open"), (1.0, 2.0))
    with pytest.raises(eq.EquipoiseError, match=r"^Mine.keep cannot be compiled: .* pooled 1, own 1, params 2$"):
        check_compiles(made("own = ('a',)\n" + FINE + KEEP + "return open"), (1.0, 2.0))


def test_compiled_tuples_have_the_declared_length() -> None:
    own = "own = ('a', 'b')\n" + FINE + KEEP
    check_compiles(made(own + "return (1, own[0] > 0)"), ())
    for found in ("own[0]", "(own[0],)", "own + own", "('a', 'b')"):
        with pytest.raises(eq.EquipoiseError, match=r"^Mine.keep cannot be compiled: it returns .*, not a tuple of 2 "):
            check_compiles(made(own + f"return {found}"), ())
    with pytest.raises(
        eq.EquipoiseError, match=r"^Mine.share .* not a tuple of 2 numbers \(a, b\); .* own 1, params 1"
    ):
        check_compiles(made(POOLS + FINE + SHARE + "return m2\n" + POOL + "return (sums[0],)"), ())
    with pytest.raises(eq.EquipoiseError, match=r"^Mine.pool .* \(c\); .* are sums 2, pooled 1, params 1$"):
        check_compiles(made(POOLS + FINE + SHARE + "return (m2, m2)\n" + POOL + "return sums"), ())


POOLED = VARIANCE + "return m2 / count + pooled[0]\n"


def test_reading_an_undeclared_pool_warns_once() -> None:
    strategy = made(POOLED)
    with pytest.warns(UserWarning, match=r"Mine.variance reads `pooled`, which is always 0 unless .* `sums` and"):
        check_strategy(strategy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_strategy(strategy)
    with pytest.warns(UserWarning, match="Mine.keep reads `pooled`"):
        check_strategy(made("own = ('a',)\n" + FINE + KEEP + "return pooled"))


def test_registering_warns_at_the_class() -> None:
    with pytest.warns(UserWarning, match="reads `pooled`") as caught:

        @register("test-forgetful")
        class Forgetful(Strategy):
            @staticmethod
            def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
                return m2 / count + pooled[0]

    assert caught[0].filename == __file__


def test_a_declared_or_unread_pool_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_strategy(made(POOLS + POOLED + SHARE + "return (m2, m2)\n" + POOL + "return (1.0,)"))
        check_strategy(made(FINE))


@pytest.mark.parametrize("name", [name for name in available() if get(name).__module__.startswith("equipoise.")])
def test_the_built_in_strategies_pass(name: str) -> None:
    strategy = get(name)()
    for support in (None, "binary", (0, 1), (-1e6, 3)):
        if strategy.name in ("b-as", "mc-ucb", "variance-ucb") and support is None:
            continue
        params = check_params(strategy, strategy.params(1000, 3, support))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_strategy(strategy)
        check_numbers(strategy, params, support)
        check_compiles(strategy, params)
