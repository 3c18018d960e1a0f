"""What a simulation found: `Simulation`, the difference of two (`Comparison`), and several along budgets (`Curve`)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, overload

import numpy as np

from equipoise import chart
from equipoise.base import paths, tables
from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import shown, spoken
from equipoise.problem import Empirical, Law, Objective, Problem, laws
from equipoise.simulation.blocks import RunSums
from equipoise.strategies import Strategy, deserialise, label, serialise

Scale = Literal["excess", "paper"]

_FORMAT = "equipoise curve 1"
# Tables show 0 for what is smaller than this share of the best loss.
_NOISE = 1e-12
# An arm whose loss, with so many errors, stays below another's with so many taken off does not have the largest.
_APART = 4.0
# As many arms are named in a sentence.
_NAMED = 3


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """
    What a strategy does on a problem at one budget, measured over many runs.

    Attributes
    ----------
    problem, strategy, budget, objective, in_flight
        What was simulated: the objective to minimise, and the number of pulls kept in flight.
    drawn
        The places of the arms whose law is not one of equipoise's. In `problem` they have the `Empirical` law of values
        that were drawn from it, and all that is measured is exact for these.
    runs, seed
        How many runs, and which samples.
    estimator
        How each arm's loss was estimated.
    losses, loss_errors
        L_k = E[(muhat_k - mu_k)²] for each arm, and its standard error.
    mean_pulls, pull_errors
        E[T_k] for each arm, and its standard error.
    regret, regret_error
        max_k L_k - Sigma/n, the paper's regret, and its standard error. Which arm has the largest loss is not known
        either, so the error is that of an interval that holds whichever it is: simultaneous 95% intervals of all losses
        near the largest contain regret ± 1.96 regret_error. The largest of several estimates is too large on average,
        by at most `regret_bias`. With another objective it is || w L ||_p minus the smallest possible value, with a
        standard error by the delta method from the means of batches of runs.
    rescaled_regret, rescaled_error
        The regret and its standard error times n^{3/2}.
    excess, excess_error
        The regret and its standard error in percent of the smallest possible value, Sigma/n for the paper's objective.
    expected_max_regret, expected_max_error
        E[max_k s²_k/T_k] - Sigma/n, the regret of later papers, which is a different quantity: it cannot fall faster
        than n^{-3/2}, while the paper's can reach n^{-2}. With another objective, its norm of s²_k/T_k takes the place
        of the largest.
    sums, batches
        The sums over all runs that these numbers come from, and the means of batches of runs with the number of runs in
        the last column.
    """

    problem: Problem
    strategy: Strategy
    budget: float
    runs: int
    seed: int
    estimator: tuple[str, ...]
    sums: RunSums
    batches: Floats
    objective: Objective = field(default_factory=Objective)
    in_flight: int = 1
    drawn: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for array in (self.sums.mean, self.sums.m2, self.batches):
            array.flags.writeable = False

    @property
    def losses(self) -> Floats:
        return self.sums.mean[: len(self.problem)]

    @property
    def loss_errors(self) -> Floats:
        return self._errors[: len(self.problem)]

    @property
    def mean_pulls(self) -> Floats:
        return self.sums.mean[len(self.problem) : 2 * len(self.problem)]

    @property
    def pull_errors(self) -> Floats:
        return self._errors[len(self.problem) : 2 * len(self.problem)]

    @cached_property
    def _errors(self) -> Floats:
        return np.sqrt(self.sums.m2 / (self.runs - 1) / self.runs)

    @property
    def worst(self) -> int:
        """The place of the arm with the largest weighted loss."""
        return int((self.objective.weight(len(self.problem)) * self.losses).argmax())

    @property
    def best(self) -> float:
        """The smallest possible value of the objective, up to rounding: Sigma/n for the paper's."""
        return self.objective.optimal_loss(self.problem.variances, self.budget)

    @property
    def regret(self) -> float:
        return self._norm(self.losses) - self.best

    @property
    def regret_error(self) -> float:
        if self.objective.p != math.inf:
            return float(_batch_error(self._along_slopes(), self.batches[:, -1]))
        weight, normal = self.objective.weight(len(self.problem)), NormalDist()
        losses, errors = weight * self.losses, weight * self.loss_errors
        near = losses + _APART * errors >= (losses - _APART * errors).max()
        z = normal.inv_cdf(1 - 0.025 / int(near.sum()))
        # If every near loss is within z errors of its estimate, the largest loss is within these.
        low, high = (losses - z * errors).max(), (losses + z * errors).max()
        return float(max(high - losses.max(), losses.max() - low) / normal.inv_cdf(0.975))

    @property
    def regret_bias(self) -> float:
        """
        How much the noise of the losses inflates the regret on average.

        For the largest loss an upper bound: max_k L̂_k - max_k L_k <= max_k (e_k - g_k) with the noise e_k of the losses
        and their distances g_k from the largest, whose mean is taken for normal e_k. The losses that were found are too
        far from each other, since each has noise of its own: so the g_k are what is left of their distances less three
        standard errors, but at least zero. And a run that has a small loss for one arm tends to have a large one for
        another: so the correlation of k losses near the largest is taken to be -1/(k-1), the least that it can be for
        all pairs, which makes the largest of them greater by sqrt(k/(k-1)). For other norms to second order: how much
        larger they are for the means of batches of runs than for all runs, over the number of batches minus one.
        """
        if self.objective.p != math.inf:
            means, runs = self.batches[:, : len(self.problem)], self.batches[:, -1]
            norms = np.array([self._norm(each) for each in means])
            return float((norms @ runs / runs.sum() - self._norm(self.losses)) / (len(runs) - 1))
        weight = self.objective.weight(len(self.problem))
        losses, errors = weight * self.losses, weight * self.loss_errors
        top, error = int(losses.argmax()), float(errors.max())
        near = losses + 8 * errors >= losses[top] - 8 * error
        k = int(near.sum())
        if error == 0 or k < 2:
            return 0.0
        errors, error = errors * math.sqrt(k / (k - 1)), error * math.sqrt(k / (k - 1))
        gaps = np.maximum(losses[top] - losses - 3 * np.hypot(errors, errors[top]), 0)[near]
        normal = NormalDist()
        # Midpoints, so that none is on the step at zero.
        x = (np.arange(720) - 359.5) / 40 * error
        z = (x[:, None] + gaps) / np.maximum(errors[near], 1e-300)
        below = np.vectorize(normal.cdf)(np.clip(z, -40, 40)).prod(axis=1)
        # E[max] = integral of 1 - F above zero - integral of F below it.
        above = np.where(x >= 0, 1 - below, -below)
        return float(above.mean() * 18 * error)

    @property
    def rescaled_regret(self) -> float:
        return self.budget**1.5 * self.regret

    @property
    def rescaled_error(self) -> float:
        return self.budget**1.5 * self.regret_error

    @property
    def excess(self) -> float:
        return 100 * self.regret / self.best if self.best > 0 else math.nan

    @property
    def excess_error(self) -> float:
        return 100 * self.regret_error / self.best if self.best > 0 else math.nan

    @property
    def expected_max_regret(self) -> float:
        return float(self.sums.mean[-1]) - self.best

    @property
    def expected_max_error(self) -> float:
        return float(self._errors[-1])

    @property
    def shown_excess(self) -> tuple[float, float]:
        """The excess and its standard error for a table: 0 where they are rounding noise."""
        return without_noise(100, self.excess, self.excess_error)

    @property
    def shown_rescaled(self) -> tuple[float, float]:
        """The rescaled regret and its standard error for a table: 0 where they are rounding noise."""
        return without_noise(self.budget**1.5 * self.best, self.rescaled_regret, self.rescaled_error)

    def _norm(self, losses: Floats) -> float:
        """The objective of these losses; an estimate below zero counts as zero where powers are taken."""
        return self.objective.loss(losses if self.objective.p == math.inf else np.maximum(losses, 0.0))

    def _slopes(self) -> Floats:
        """The derivatives of the norm of the losses: w_k (w_k L_k / norm)^{p-1}; for the largest, its weight."""
        weight, p = self.objective.weight(len(self.problem)), self.objective.p
        if p == math.inf:
            return np.where(np.arange(weight.size) == self.worst, weight, 0.0)
        norm = self._norm(self.losses)
        shares = weight * np.maximum(self.losses, 0.0) / norm if norm > 0 else np.zeros(weight.size)
        # Where p < 1 the slope of a loss of zero is infinite; such an arm adds nothing and has no error.
        return np.where(shares > 0, weight * np.where(shares > 0, shares, 1.0) ** (p - 1), 0.0)

    def _along_slopes(self) -> Floats:
        """The losses of each batch of runs along the slopes of the norm, for the delta method."""
        return np.asarray(self.batches[:, : len(self.problem)] @ self._slopes())

    def __sub__(self, other: Simulation) -> Comparison:
        """Compare with another simulation of the same problem on the same samples."""
        if not isinstance(other, Simulation):
            return NotImplemented
        for name in ("objective", "problem", "runs", "seed"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise InvalidInput(
                    f"compared simulations must have the same {name}, got {shown(mine)} and {shown(theirs)}"
                )
        return Comparison(self, other)

    def plot(self, scale: Scale = "excess") -> Any:
        """Return `Curve.plot` of this simulation alone, one point; simulate several budgets for a line."""
        return Curve([self]).plot(scale)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain numbers and strings, ready for JSON."""
        found = {
            "problem": [_described(law) for law in self.problem.arms],
            "strategy": _described(self.strategy) | {"name": self.strategy.name},
            "budget": self.budget,
            "objective": _written(self.objective),
            "in_flight": self.in_flight,
            "runs": self.runs,
            "seed": self.seed,
            "estimator": list(self.estimator),
            "drawn": list(self.drawn),
            "losses": self.losses,
            "loss_errors": self.loss_errors,
            "mean_pulls": self.mean_pulls,
            **{name: getattr(self, name) for name in NUMBERS},
        }
        return dict(tables.json_ready(found))

    def __repr__(self) -> str:
        late = f", {self.in_flight:,} in flight" if self.in_flight > 1 else ""
        (excess, excess_error), (regret, regret_error) = self.shown_excess, self.shown_rescaled
        return (
            f"{label(self.strategy)}, {self._size}{late}: excess {_with_error(excess, excess_error, '%')}, "
            f"rescaled regret {_with_error(regret, regret_error)}; "
            f"{self.runs:,} runs, estimated by {' and '.join(dict.fromkeys(self.estimator))}{self._stand_ins}"
        )

    @property
    def _stand_ins(self) -> str:
        """What the laws of the user are simulated by, in words that follow a sentence; empty without any."""
        if not self.drawn:
            return ""
        law = self.problem.arms[self.drawn[0]]
        assert isinstance(law, Empirical)
        whose = spoken(self.drawn) if len(self.drawn) <= _NAMED else f"{len(self.drawn):,} arms"
        laws = "law" if len(self.drawn) == 1 else "laws"
        return f"; {len(law.values):,} drawn values stand for the {laws} of {whose}"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = [("arm", "law", "mean pulls", "loss", "standard error")]
        for k, law in enumerate(self.problem.arms[: tables.MOST_ROWS]):
            numbers = (self.mean_pulls[k], *without_noise(self.best, self.losses[k], self.loss_errors[k]))
            rows.append((str(k), shown(law), *map(tables.cell, numbers)))
        return tables.html(rows, _left_out(len(self.problem), "arm"), before=[repr(self)])

    @property
    def _size(self) -> str:
        return f"n = {self.budget:,}" if self.objective.costs is None else f"budget {self.budget:,g}"


# The numbers of a simulation besides those by arm.
NUMBERS = (
    "regret",
    "regret_error",
    "regret_bias",
    "rescaled_regret",
    "rescaled_error",
    "excess",
    "excess_error",
    "expected_max_regret",
    "expected_max_error",
)


@dataclass(frozen=True, repr=False)
class Comparison:
    """
    One simulation minus another on the same samples.

    Attributes
    ----------
    one, other
        The simulations.
    losses, loss_errors
        The difference of each arm's losses, and its standard error from the means of batches of runs, pair by pair.
    regret, regret_error
        The difference of the regrets, and its standard error.
    """

    one: Simulation
    other: Simulation

    @property
    def losses(self) -> Floats:
        return self.one.losses - self.other.losses

    @property
    def loss_errors(self) -> Floats:
        K = len(self.one.problem)
        return _batch_error(self.one.batches[:, :K] - self.other.batches[:, :K], self.one.batches[:, -1:])

    @property
    def regret(self) -> float:
        return self.one.regret - self.other.regret

    @property
    def regret_error(self) -> float:
        # Of largest losses where they are largest; of norms along their slopes.
        return float(_batch_error(self.one._along_slopes() - self.other._along_slopes(), self.one.batches[:, -1]))

    def __repr__(self) -> str:
        one, other = label(self.one.strategy), label(self.other.strategy)
        if self.one.budget == self.other.budget:
            compared = f"{one} minus {other}, {self.one._size}"
        else:
            compared = f"{one} ({self.one._size}) minus {other} ({self.other._size})"
        return f"{compared}: regret {_with_error(*without_noise(self._best, self.regret, self.regret_error))}"

    @property
    def _best(self) -> float:
        return max(self.one.best, self.other.best)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = [("arm", "law", "difference of losses", "standard error")]
        for k, law in enumerate(self.one.problem.arms[: tables.MOST_ROWS]):
            numbers = without_noise(self._best, self.losses[k], self.loss_errors[k])
            rows.append((str(k), shown(law), *map(tables.cell, numbers)))
        return tables.html(rows, _left_out(len(self.one.problem), "arm"), before=[repr(self)])


def _batch_error(means: Floats, runs: Floats) -> Any:
    """The standard error of the mean of all runs, from the means of batches with these numbers of runs."""
    mean = (runs * means).sum(axis=0) / runs.sum(axis=0)
    return np.sqrt((runs * (means - mean) ** 2).sum(axis=0) / ((len(means) - 1) * runs.sum(axis=0)))


class Curve(Sequence[Simulation]):
    """
    Simulations of one or more strategies at one or more budgets.

    It is a sequence of them, in the order of the strategies, then of the budgets.
    """

    def __init__(self, simulations: Iterable[Simulation]) -> None:
        self._simulations = tuple(simulations)

    @overload
    def __getitem__(self, index: int) -> Simulation: ...
    @overload
    def __getitem__(self, index: slice) -> Curve: ...

    def __getitem__(self, index: int | slice) -> Simulation | Curve:
        found = self._simulations[index]
        return Curve(found) if isinstance(found, tuple) else found

    def __iter__(self) -> Iterator[Simulation]:
        return iter(self._simulations)

    def __len__(self) -> int:
        return len(self._simulations)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of plain numbers for each simulation."""
        return [
            {
                "strategy": label(sim.strategy),
                "n": sim.budget,
                "runs": sim.runs,
                **{name: getattr(sim, name) for name in NUMBERS},
            }
            for sim in self
        ]

    def to_frame(self, library: tables.FrameLibrary | None = None) -> Any:
        """
        Return a DataFrame with a row for each simulation.

        Parameters
        ----------
        library
            "pandas" or "polars"; by default whichever is installed.
        """
        rows = self.rows()
        names = rows[0] if rows else ("strategy", "n", "runs", *NUMBERS)
        return tables.frame({name: [row[name] for row in rows] for name in names}, library)

    def plot(self, scale: Scale = "excess") -> Any:
        """
        Return an Altair chart with a line for each strategy; `chart.save` writes it to a file.

        Parameters
        ----------
        scale
            "excess": the excess over the best allocation in percent. "paper": the regret times n^{3/2}.
        """
        return chart.regret(self.rows(), scale=scale)

    def to_json(self) -> str:
        """Return all simulations as one JSON array."""
        return json.dumps([sim.to_dict() for sim in self], ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file that `Curve.load` reads; the strategies must be registered."""
        saved = [
            sim.to_dict()
            | {
                "strategy": serialise(sim.strategy),
                "sums": [sim.sums.count, sim.sums.mean.tolist(), sim.sums.m2.tolist()],
                "batches": sim.batches.tolist(),
            }
            for sim in self
        ]
        Path(path).write_text(json.dumps({"format": _FORMAT, "simulations": saved}, ensure_ascii=False))

    @classmethod
    def load(cls, path: str | Path) -> Curve:
        """Read a file that `save` wrote; the strategies in it must be registered."""
        wrong = ValueError(f"{path} is not a file that Curve.save wrote")
        with paths.opened("a curve", Path(path)) as file:
            try:
                saved = json.loads(file.read())
            except (ValueError, RecursionError):
                raise wrong from None
        if not isinstance(saved, dict) or saved.get("format") != _FORMAT:
            raise wrong
        return cls(
            Simulation(
                Problem([_law(law) for law in each["problem"]]),
                deserialise(each["strategy"]),
                each["budget"],
                each["runs"],
                each["seed"],
                tuple(each["estimator"]),
                RunSums(each["sums"][0], np.array(each["sums"][1]), np.array(each["sums"][2])),
                np.array(each["batches"]),
                _read(each.get("objective", {})),
                each.get("in_flight", 1),
                tuple(each.get("drawn", ())),
            )
            for each in saved["simulations"]
        )

    def __repr__(self) -> str:
        return tables.text(self._cells(), self._notes()) if self else "a curve without simulations"

    def _repr_html_(self) -> str:
        return tables.html(self._cells(), self._notes())

    def _cells(self) -> list[tuple[str, ...]]:
        """A title row and one row for each simulation."""
        titles = ("strategy", "budget", "excess %", "std. error of excess", "rescaled regret", "std. error of regret")
        rows: list[tuple[str, ...]] = [titles]
        for sim in self[: tables.MOST_ROWS]:
            numbers = (*sim.shown_excess, *sim.shown_rescaled)
            rows.append((label(sim.strategy), f"{sim.budget:,}", *map(tables.cell, numbers)))
        return rows

    def _notes(self) -> list[str]:
        stand_ins = dict.fromkeys(sim._stand_ins.removeprefix("; ") for sim in self if sim.drawn)
        return [*_left_out(len(self), "simulation"), *(f"{words}." for words in stand_ins)]


# ---- words


def without_noise(best: float, value: float, error: float) -> tuple[float, float]:
    """Return a value and its standard error, each 0 where it is rounding noise relative to the best loss."""
    least = _NOISE * best
    return 0.0 if abs(value) < least else float(value), 0.0 if error < least else float(error)


def _with_error(value: float, error: float, unit: str = "") -> str:
    if math.isnan(value):
        return "undefined"
    return f"{tables.amount(value)}{unit} (standard error {tables.amount(error, 2)}{unit})"


def _left_out(rows: int, noun: str) -> list[str]:
    """A note on the rows that a table leaves out; none where it has all."""
    more = rows - tables.MOST_ROWS
    return [f"and {tables.count(more, f'more {noun}')}"] if more > 0 else []


# ---- laws and objectives as plain data


def _described(thing: Any) -> dict[str, Any]:
    """A law or a strategy as its class and its parameters."""
    parameters = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}
    return {"class": type(thing).__name__, "parameters": parameters}


def _law(described: Mapping[str, Any]) -> Law:
    """The law that `_described` was given."""
    found: Law = getattr(laws, described["class"])(**described["parameters"])
    return found


def _written(objective: Objective) -> dict[str, Any]:
    """An objective as plain numbers; JSON has none for infinity."""
    return {
        "p": "inf" if objective.p == math.inf else objective.p,
        "weights": None if objective.weights is None else list(objective.weights),
        "costs": None if objective.costs is None else list(objective.costs),
    }


def _read(written: Mapping[str, Any]) -> Objective:
    """The objective that `_written` was given; the paper's from a file that says nothing of one."""
    weights, costs = written.get("weights"), written.get("costs")
    return Objective(float(written.get("p", "inf")), weights and tuple(weights), costs and tuple(costs))
