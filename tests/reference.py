"""The paper's three strategies, written from its text a second time: slow, with none of the package's code.

Every round recomputes the mean and the variance of every arm from the list of its samples, in exact
fractions. Only the square roots and logarithms are rounded.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import log, sqrt
from typing import Any, NamedTuple, Protocol

Samples = Sequence[Sequence[float]]
"""`samples[k][i]` is the paper's X_{k,i+1}. What an arm has shown so far has the same form."""

NEAR = Fraction(1, 10**12)
"""The relative distance from the best index at which rounding may decide."""


class Decision(NamedTuple):
    """The arm to pull, and all those whose index is the best up to rounding."""

    arm: int
    near: frozenset[int]


Rule = Callable[[Samples], Decision]
"""From the samples seen so far, T_{k,t-1} of arm k, to the arm k_t."""


def ch_as_rule(n: int, delta: float | None = None, width: float = 1.0) -> Rule:
    """CH-AS, figure ch-algorithm: two pulls each, then the largest B_{k,t}; delta = n^{-5/2}, Theorem 1."""
    delta = n**-2.5 if delta is None else delta

    def index(xs: Sequence[float]) -> Fraction:
        bonus = 3 * width**2 * sqrt(log(1 / delta) / (2 * len(xs)))
        return (_biased_variance(xs) + Fraction(bonus)) / len(xs)

    return lambda seen: _initial(seen, pulls=2) or _argmax([index(xs) for xs in seen])


def b_as_rule(
    n: int,
    exploration: float | None = None,
    c1: float | None = None,
    c2: float | None = None,
    delta: float | None = None,
) -> Rule:
    """B-AS, figure b-algorithm: two pulls each, then the largest B_{q,t}; delta = n^{-7/2}, Theorem 2.

    The index is expanded, as in the figure; `a` is that of lemma event-B-AS, with 2 sqrt(c1 log(c2/delta)).
    Remark 2 makes A = a sqrt(log(2/delta)) the one parameter: `exploration`, in place of c1, c2 and delta.
    """
    delta = n**-3.5 if delta is None else delta
    if exploration is None:
        assert c1 is not None
        assert c2 is not None
        a = 2 * sqrt(c1 * log(c2 / delta)) + (
            sqrt(c1 * delta * (1 + c2 + log(c2 / delta))) / ((1 - delta) * sqrt(2 * log(2 / delta))) * sqrt(n)
        )
    else:
        a = exploration / sqrt(log(2 / delta))

    def index(xs: Sequence[float]) -> Fraction:
        variance = _unbiased_variance(xs)
        cross = 4 * a * sqrt(variance) * sqrt(log(2 / delta) / len(xs))
        square = 4 * a**2 * log(2 / delta) / len(xs)
        return (variance + Fraction(cross) + Fraction(square)) / len(xs)

    return lambda seen: _initial(seen, pulls=2) or _argmax([index(xs) for xs in seen])


def gafs_max_rule(alpha: float = 1.0) -> Rule:
    """GAFS-MAX, recalled from Antos et al.: one pull each; the least-pulled arm U at round t if
    T_U < alpha sqrt(t-1) + 1, else the largest biased variance over T.
    """

    def decide(seen: Samples) -> Decision:
        pulls = [len(xs) for xs in seen]
        least = pulls.index(min(pulls))
        if (pulls[least] - 1) ** 2 < Fraction(alpha) ** 2 * sum(pulls):  # sum(pulls) = t - 1
            return Decision(least, frozenset({least}))
        return _argmax([_biased_variance(xs) / len(xs) for xs in seen])

    return lambda seen: _initial(seen, pulls=1) or decide(seen)


def ch_as(samples: Samples, n: int, delta: float | None = None, width: float = 1.0) -> list[int]:
    """The n arms that CH-AS pulls."""
    return _follow(ch_as_rule(n, delta, width), samples, n)


def b_as(
    samples: Samples,
    n: int,
    exploration: float | None = None,
    c1: float | None = None,
    c2: float | None = None,
    delta: float | None = None,
) -> list[int]:
    """The n arms that B-AS pulls."""
    return _follow(b_as_rule(n, exploration, c1, c2, delta), samples, n)


def gafs_max(samples: Samples, n: int, alpha: float = 1.0) -> list[int]:
    """The n arms that GAFS-MAX pulls."""
    return _follow(gafs_max_rule(alpha), samples, n)


def decisions(rule: Rule, samples: Samples, arms: Sequence[int]) -> list[Decision]:
    """What the rule says before each of the given pulls, whoever chose them."""
    seen: list[list[float]] = [[] for _ in samples]
    said = []
    for arm in arms:
        said.append(rule(seen))
        seen[arm].append(samples[arm][len(seen[arm])])
    return said


class Asker(Protocol):
    """What `replay` needs of a study."""

    @property
    def done(self) -> bool:
        """Whether the budget is spent."""

    def ask(self) -> Any:
        """A ticket, whose `arm` is an arm's index."""

    def tell(self, ticket: Any, value: float) -> None:
        """The ticket's sample."""


def replay(study: Asker, samples: Samples) -> list[int]:
    """The arms that a study asks for when arm k answers with `samples[k]` in order."""
    arms: list[int] = []
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, samples[ticket.arm][arms.count(ticket.arm)])
        arms.append(ticket.arm)
    return arms


def _biased_variance(xs: Sequence[float]) -> Fraction:
    """Equation estim-var1."""
    exact = [Fraction(x) for x in xs]
    mean = sum(exact, Fraction()) / len(xs)
    return sum((x**2 for x in exact), Fraction()) / len(xs) - mean**2


def _unbiased_variance(xs: Sequence[float]) -> Fraction:
    """Equation estim-var2."""
    exact = [Fraction(x) for x in xs]
    mean = sum(exact, Fraction()) / len(xs)
    return sum(((x - mean) ** 2 for x in exact), Fraction()) / (len(xs) - 1)


def _initial(seen: Samples, pulls: int) -> Decision | None:
    """The next of the initial pulls, in turn, if any is left."""
    t = sum(len(xs) for xs in seen) + 1
    arm = (t - 1) % len(seen)
    return Decision(arm, frozenset({arm})) if t <= pulls * len(seen) else None


def _argmax(index: Sequence[Fraction]) -> Decision:
    """The lowest arm of the largest index."""
    best = max(index)
    return Decision(index.index(best), frozenset(k for k, b in enumerate(index) if b >= best * (1 - NEAR)))


def _follow(rule: Rule, samples: Samples, n: int) -> list[int]:
    """The first n arms of a rule that has its way."""
    seen: list[list[float]] = [[] for _ in samples]
    arms = []
    for _ in range(n):
        arm = rule(seen).arm
        seen[arm].append(samples[arm][len(seen[arm])])
        arms.append(arm)
    return arms
