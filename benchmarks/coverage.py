"""
Measure how often intervals miss and how wide they are, for every kind, strategy and support, on ten problems each.

`make docs` runs this. It writes docs/reference/coverage.md, the tables of docs/explanation/intervals.md and the picture
there; the last line printed is one JSON object. A run misses if at any time, from the first sample of an arm to its
last, the interval of any arm does not contain the arm's mean. All strategies meet the same samples, and an arm's
interval depends on its own samples alone: so each stream is checked once, and a strategy's run misses if a stream does
before the strategy's last sample of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import equipoise as eq
from equipoise import chart
from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.compiled import jit
from equipoise.engine import cpu, streams
from equipoise.engine.setup import Setup
from equipoise.intervals import KINDS, Intervals, Kind, bounded_betting, fixed_n
from equipoise.strategies import Strategy, Support

DOCS = Path(__file__).parent.parent / "docs"
LEVEL, BUDGET, RUNS, SEED = 0.95, 1000, 2000, 5


@dataclass(frozen=True)
class Setting:
    """A problem with the support that the user declares."""

    name: str
    support: Support
    problem: eq.Problem


def _drawn(draw: Callable[[np.random.Generator], Floats]) -> eq.Empirical:
    """Return a law of 500 values, the same each time."""
    return eq.Empirical(draw(np.random.default_rng(1)))


def _beta(a: float, b: float) -> eq.Empirical:
    return _drawn(lambda rng: rng.beta(a, b, 500))


def _binary(*ps: float) -> Setting:
    return Setting(", ".join(f"{p:g}" for p in ps), "binary", eq.Problem([eq.Bernoulli(p) for p in ps]))


def _rare(one_in: int) -> eq.Empirical:
    return eq.Empirical([0.0] * (one_in - 1) + [1.0])


SETTINGS: dict[str, list[Setting]] = {
    "binary": [
        _binary(0.5, 0.5, 0.5),
        _binary(0.2, 0.4, 0.6),
        _binary(0.1, 0.5, 0.9),
        _binary(0.3, 0.3, 0.7),
        _binary(0.05, 0.5, 0.5),
        _binary(0.01, 0.5, 0.99),
        _binary(0.01, 0.02, 0.05),
        _binary(0.95, 0.98, 0.99),
        _binary(0.001, 0.01, 0.1),
        _binary(0.25, 0.75, 0.9),
    ],
    "bounded": [
        Setting("uniform: [0, 1], [0.4, 0.6], [0, 0.2]", (0, 1), eq.Problem(
            [eq.Uniform(), eq.Uniform(0.4, 0.6), eq.Uniform(0, 0.2)])),
        Setting("like Beta(2, 5), Beta(5, 2), Beta(30, 30)", (0, 1), eq.Problem(
            [_beta(2, 5), _beta(5, 2), _beta(30, 30)])),
        Setting("like Beta(1/2, 1/2), Beta(0.1, 0.3), Beta(1, 9)", (0, 1), eq.Problem(
            [_beta(0.5, 0.5), _beta(0.1, 0.3), _beta(1, 9)])),
        Setting("two points: 0.2 or 0.8, 0 or 1, 0.49 or 0.51", (0, 1), eq.Problem(
            [eq.Empirical([0.2, 0.8]), eq.Empirical([0, 1]), eq.Empirical([0.49, 0.51])])),
        Setting("rare ones: 1 in 20, in 100, in 1,000", (0, 1), eq.Problem([_rare(20), _rare(100), _rare(1000)])),
        Setting("mixtures: half zeros, a third ones, two humps", (0, 1), eq.Problem(
            [_drawn(lambda rng: rng.random(500) * (rng.random(500) < 0.5)),
             _drawn(lambda rng: np.where(rng.random(500) < 1 / 3, 1.0, rng.beta(2, 8, 500))),
             _drawn(lambda rng: np.where(rng.random(500) < 0.7, rng.beta(20, 80, 500), rng.beta(80, 20, 500)))])),
        Setting("near the ends: [0, 0.01], [0.99, 1], [0.5, 0.51]", (0, 1), eq.Problem(
            [eq.Uniform(0, 0.01), eq.Uniform(0.99, 1), eq.Uniform(0.5, 0.51)])),
        Setting("a constant, a coin, uniform", (0, 1), eq.Problem(
            [eq.Constant(0.5), eq.Bernoulli(0.5), eq.Uniform()])),
        Setting("skewed: exponential cut at 8, log-normal cut at 20, in [0, 20]", (0, 20), eq.Problem(
            [_drawn(lambda rng: np.minimum(rng.exponential(1, 500), 8)),
             _drawn(lambda rng: np.minimum(rng.lognormal(0, 1, 500), 20)), eq.Uniform(0, 20)])),
        Setting("a support that is far too wide: [-1,000, 1,000]", (-1000, 1000), eq.Problem(
            [eq.Uniform(-1, 1), eq.Rademacher(5), eq.Empirical([-1000] + [3.0] * 200)])),
    ],
    "unbounded": [
        Setting("Gaussian, variances 1, 1, 1", None, eq.Problem([eq.Gaussian()] * 3)),
        Setting("Gaussian, variances 9, 1, 0.01", None, eq.Problem([eq.Gaussian(0, v) for v in (9, 1, 0.01)])),
        Setting("uniform, two points, Gaussian", None, eq.Problem([eq.Uniform(), eq.Rademacher(), eq.Gaussian()])),
        Setting("Laplace, variances 2, 2, 1", None, eq.Problem([eq.Laplace(), eq.Laplace(), eq.Laplace(0, 1)])),
        Setting("exponential, means 1, 1, 2", None, eq.Problem([eq.Exponential(s) for s in (1, 1, 2)])),
        Setting("Student, 5 degrees of freedom", None, eq.Problem([eq.StudentT(5)] * 3)),
        Setting("Student, 3 degrees of freedom", None, eq.Problem([eq.StudentT(3)] * 3)),
        Setting("log-normal, σ = 0.5", None, eq.Problem([eq.LogNormal(0, 0.5)] * 3)),
        Setting("log-normal, σ = 1", None, eq.Problem([eq.LogNormal()] * 3)),
        Setting("one value in 200 is 100 times the rest", None, eq.Problem(
            [eq.Empirical([1.0] * 199 + [100.0]), eq.Gaussian(), eq.Exponential()])),
    ],
}  # fmt: skip


def strategies(support: Support) -> list[Strategy]:
    """Return every strategy, with the parameters it needs on such arms."""
    of = eq.strategies
    scaled = {"b-as": of.BAS, "mc-ucb": of.MCUCB, "variance-ucb": of.VarianceUCB}
    known = {name: made() if support is not None else made(exploration=0.5) for name, made in scaled.items()}
    return [of.resolve(known.get(name, name)) for name in BUILT_IN]


BUILT_IN = (
    "auto",
    "b-as",
    "ch-as",
    "gafs-max",
    "mc-ucb",
    "variance-ucb",
    "two-stage",
    "greedy",
    "uniform",
    "oracle",
)


def kinds(support: Support) -> tuple[Kind, ...]:
    """Return the kinds that the support allows; `benchmarks.precision` measures those for stopping by width."""
    allowed = KINDS if support is not None else ("asymptotic", "fixed-n")
    return tuple(kind for kind in allowed if kind != "fixed-width")


def counts(setting: Setting, strategy: Strategy, runs: int, seed: int, budget: int) -> Ints:
    """Return how many samples of each arm the strategy took, by arm and run."""
    problem = setting.problem
    params = strategy.params(budget, len(problem), setting.support)
    ends = cpu.simulate(Setup(problem, strategy, (budget,), params, seed), 0, runs)
    return np.asarray(ends.counts[0], dtype=np.int64)


# Whether a mean is in an interval is quicker to say than where the interval ends. Tests hold the one against the other.


@jit
def _by_capital(row: Any, mean: float, alpha: float, settings: Any) -> bool:
    m = (mean - settings[bounded_betting.LOW]) / settings[bounded_betting.WIDTH]
    return bool(bounded_betting.capital(row, m)[0] <= -math.log(alpha))


@jit
def _by_quantile(row: Any, mean: float, alpha: float, settings: Any) -> bool:
    t = row[0]
    return t < 2 or bool(abs(row[1] - mean) <= settings[int(t)] * math.sqrt(row[2] / (t - 1) / t) * (1 + 1e-12))


@jit
def _by_count(row: Any, mean: float, alpha: float, settings: Any) -> bool:
    t = int(row[0])
    return bool(settings[t, 0] <= round(row[0] * row[1]) <= settings[t, 1])


def quantiles(alpha: float, length: int) -> Floats:
    """Student's quantile for each number of samples."""
    return np.array([math.inf, math.inf, *(fixed_n.student_quantile(float(df), alpha) for df in range(1, length))])


def limits(p: float, alpha: float, length: int) -> Ints:
    """The fewest and the most ones among t tosses with which Clopper and Pearson's interval holds p, by t."""
    found = np.zeros((length + 1, 2), np.int64)
    least = most = 0
    for t in range(1, length + 1):
        # From one t to the next each limit grows by one or stays.
        least += least < t and fixed_n.upper_tail(p, least + 1.0, float(t - least)) < alpha / 2
        most += 1 - fixed_n.upper_tail(p, most + 1.0, float(t - most)) >= alpha / 2
        found[t] = least, most
    return found


@cache
def _watch(update: Any, bounds: Any, inside: Any) -> Any:
    """Compiled: for each time, whether a stream's interval leaves out the mean."""
    if inside is None:

        def inside(row: Any, mean: float, alpha: float, settings: Any) -> bool:
            low, high = bounds(row, alpha, settings)
            # What rounding does to a constant arm is no miss.
            slack = 1e-12 * (abs(low) + abs(high) + abs(mean))
            return bool(low - slack <= mean <= high + slack)

        inside = jit(inside)

    def watch(values: Any, mean: float, alpha: float, settings: Any, columns: int, tables: Any, out: Any) -> None:
        state = np.zeros((1, columns))
        for t in range(len(values)):
            update(state, 0, values[t], settings)
            out[t] = not inside(state[0], mean, alpha, tables)

    return jit(watch, nogil=True)


def outside(setting: Setting, kind: Kind, lengths: Ints, runs: int, seed: int) -> list[Bools]:
    """For each arm: by run and time, whether the interval leaves out the mean."""
    problem = setting.problem
    kernel = Intervals(len(problem), setting.support, kind, LEVEL, BUDGET).kernel
    alpha = (1 - LEVEL) / len(problem)
    shortcuts: dict[Any, Any] = {
        bounded_betting.bounds: _by_capital,
        fixed_n.clopper_pearson: _by_count,
        fixed_n.student: _by_quantile,
    }
    inside = shortcuts.get(kernel.bounds)
    watch = _watch(kernel.update, kernel.bounds, inside)

    def arm(k: int, length: int) -> Bools:
        mean = float(problem.means[k])
        tables: Any = kernel.settings
        if inside is _by_count:
            tables = limits(mean, alpha, length)
        elif inside is _by_quantile:
            tables = quantiles(alpha, length)
        out = np.zeros((runs, length), np.bool_)

        def run(number: int) -> None:
            values = streams.samples(problem, seed, number, k, length)
            watch(values, mean, alpha, kernel.settings, kernel.columns, tables, out[number])

        run(0)  # compiles
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, range(1, runs)))
        return out

    return [arm(k, int(length)) for k, length in enumerate(lengths)]


@dataclass(frozen=True)
class Cell:
    """How often runs of a strategy missed: at any time, and at the end alone."""

    support: str
    problem: str
    kind: Kind
    strategy: str
    runs: int
    ever: float
    at_end: float

    @property
    def error(self) -> float:
        """The standard error of `ever`; that of one run in all of them if none missed."""
        return math.sqrt(max(self.ever * (1 - self.ever), 1 / self.runs) / self.runs)


def cells(
    support: str, setting: Setting, runs: int = RUNS, seed: int = SEED, only: Collection[str] | None = None
) -> list[Cell]:
    """Every kind under every strategy, or `only` some strategies, on a problem."""
    chosen = [s for s in strategies(setting.support) if only is None or s.name in only]
    ends = {s.name: counts(setting, s, runs, seed, BUDGET) for s in chosen}
    lengths = np.max([each.max(axis=1) for each in ends.values()], axis=0)
    found = []
    for kind in kinds(setting.support):
        missed = outside(setting, kind, lengths, runs, seed)
        first = [np.where(out.any(axis=1), out.argmax(axis=1), out.shape[1]) for out in missed]
        for strategy, end in ends.items():
            ever = np.any([first[k] < end[k] for k in range(len(end))], axis=0)
            last = np.any([missed[k][np.arange(runs), end[k] - 1] for k in range(len(end))], axis=0)
            found.append(Cell(support, setting.name, kind, strategy, runs, float(ever.mean()), float(last.mean())))
    return found


MARKS = (20, 50, 100, 300, 1000, 3000, 10_000)
# Width by law, for one arm alone: what is sampled, and what support is declared.
WIDTHS: dict[str, tuple[eq.Law, Support]] = {
    "coin, p = 0.5": (eq.Bernoulli(0.5), "binary"),
    "coin, p = 0.1": (eq.Bernoulli(0.1), "binary"),
    "coin, p = 0.01": (eq.Bernoulli(0.01), "binary"),
    "uniform on [0, 1]": (eq.Uniform(), (0, 1)),
    "uniform on [0.4, 0.6] in [0, 1]": (eq.Uniform(0.4, 0.6), (0, 1)),
    "uniform on [0, 0.01] in [0, 1]": (eq.Uniform(0, 0.01), (0, 1)),
    "like Beta(2, 5)": (_beta(2, 5), (0, 1)),
    "Gaussian": (eq.Gaussian(), None),
}
HEDGED = "(hedged capital)"
# Those in the short table, each with the interval that is the default and the one of textbooks.
SHORT = {
    "coin, p = 0.5": "betting",
    "uniform on [0, 1]": "betting",
    "uniform on [0, 0.01] in [0, 1]": "betting",
    "Gaussian": "asymptotic",
}


def hedged(values: Floats, alpha: float) -> float:
    """
    The width of Waudby-Smith and Ramdas' hedged capital interval, to compare with: O(t) for each candidate mean.

    With the bets of their empirical Bernstein sequence, cut at 1/(2m) and 1/(2(1-m)); on [0, 1], both edges halved to.
    """
    t = np.arange(1, len(values) + 1)
    means = (0.5 + values.cumsum()) / (t + 1)
    variances = (0.25 + ((values - means) ** 2).cumsum()) / (t + 1)
    bets = np.sqrt(2 * math.log(2 / alpha) / (np.append(0.25, variances[:-1]) * t * np.log1p(t)))

    def edge(x: Floats) -> float:
        inner, outer = float(x.mean()), 1e-9
        for _ in range(30):
            m = (inner + outer) / 2
            rejected = np.log1p(np.minimum(bets, 0.5 / m) * (x - m)).sum() >= math.log(2 / alpha)
            inner, outer = (inner, m) if rejected else (m, outer)
        return outer

    return 1 - edge(1 - values) - edge(values)


def widths(runs: int = 40, seed: int = SEED, marks: tuple[int, ...] = MARKS) -> list[dict[str, Any]]:
    """Mean widths at 95%, for one arm alone, by law, kind and number of samples."""
    rows = []
    for name, (law, support) in WIDTHS.items():
        problem = eq.Problem([law])
        for kind in kinds(support):
            rule = Intervals(1, support, kind, LEVEL, budget=1000)
            found = np.zeros((runs, len(marks)))
            for run in range(runs):
                state, done = rule.start(), 0
                for i, mark in enumerate(marks):
                    for x in streams.samples(problem, seed, run, 0, mark - done, done):
                        rule.kernel.update(state, 0, x, rule.kernel.settings)
                    done = mark
                    low, high = rule.alone(state, 0)
                    found[run, i] = high - low
            rows += [
                {"law": name, "kind": str(kind), "t": t, "width": float(w)}
                for t, w in zip(marks, found.mean(0), strict=True)
            ]
        if support is not None:
            for t in marks:
                several = [hedged(streams.samples(problem, seed, run, 0, t), 1 - LEVEL) for run in range(min(runs, 20))]
                rows.append({"law": name, "kind": HEDGED, "t": t, "width": float(np.mean(several))})
    return rows


def ever_missed(law: eq.Law, support: Support, length: int, runs: int, seed: int = SEED) -> list[dict[str, Any]]:
    """The share of streams, of one arm alone, whose interval left out the mean by time t, for each kind."""
    setting = Setting("", support, eq.Problem([law]))
    rows = []
    for kind in kinds(support):
        (missed,) = outside(setting, kind, np.array([length]), runs, seed)
        share = np.maximum.accumulate(missed, axis=1).mean(axis=0)
        for t in sorted({round(10**e) for e in np.linspace(0, math.log10(length), 25)}):
            rows.append({"kind": str(kind), "t": t, "missed": float(share[t - 1])})
    return rows


def picture(missed: list[dict[str, Any]], wide: list[dict[str, Any]], path: Path) -> None:
    """Draw how many intervals have missed so far and, below, how wide they are."""
    nominal = [{"kind": "5%", "t": t, "missed": 0.05} for t in (1, max(row["t"] for row in missed))]
    misses = chart.lines(
        [*missed, *nominal],
        x=chart.X("t", "samples t"),
        y=chart.Y("missed", "share that missed at or before t"),
        series=chart.Series("kind", dashed=["5%"]),
        title="95% intervals for a uniform arm, looked at after each sample",
        width=380,
    )
    widths = chart.lines(
        [row for row in wide if row["law"] == "uniform on [0, 1]" and row["kind"] != HEDGED],
        x=chart.X("t", "samples t"),
        y=chart.Y("width", "mean width", log=True, domain=(0.008, 1.2)),
        series=chart.Series("kind"),
        title="What that costs in width",
        width=380,
    )
    chart.save(chart.beside([misses, widths], below=True), path)


def _each(update: Any) -> Any:
    """Compiled: all values, one after the other."""

    def each(state: Any, values: Any, settings: Any) -> None:
        for x in values:
            update(state, 0, x, settings)

    return jit(each)


def costs(count: int = 200_000, arms: int = 10_000) -> list[list[str]]:
    """For each kind: memory for each arm, time for a sample in a compiled loop, time for a look at one arm."""
    rows = []
    supports: tuple[Support, ...] = ("binary", (0.0, 1.0), None)
    for kind, support in product(KINDS, supports):
        # The asymptotic kind is the same for every support.
        if kind not in kinds(support) or (kind == "asymptotic" and support != (0.0, 1.0)):
            continue
        rule = Intervals(arms, support, kind)
        compiled = _each(rule.kernel.update)
        values = np.random.default_rng(1).random(count)
        values = (values < 0.3).astype(float) if support == "binary" else values
        state = rule.start()
        compiled(state, values[:300], rule.kernel.settings)
        state[:] = state[0]
        rule.bounds(state)
        begin = perf_counter()
        compiled(rule.start(), values, rule.kernel.settings)
        middle = perf_counter()
        rule.bounds(state)
        end = perf_counter()
        name = kind + {"binary": ", binary", (0.0, 1.0): ", bounded", None: ", unbounded"}[support]
        times = f"{1e9 * (middle - begin) / count:.0f} ns", f"{1e6 * (end - middle) / arms:.2g} µs"
        rows.append([name, f"{8 * rule.kernel.columns} bytes", *times])
    return rows


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    rule = "|" + "|".join(["---", *["--:"] * (len(head) - 1)]) + "|"
    return "\n".join(["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def summary(found: list[Cell]) -> str:
    """For each problem and kind the worst strategy's share."""
    parts = []
    for support, settings in SETTINGS.items():
        of = kinds(settings[0].support)
        rows = []
        for setting in settings:
            here = [c for c in found if (c.support, c.problem) == (support, setting.name)]
            ever = [percent(max(c.ever for c in here if c.kind == kind)) for kind in of]
            end = percent(max(c.at_end for c in here if c.kind == "fixed-n"))
            rows.append([setting.name, *ever, end])
        parts += [table([f"{support} arms", *of, "fixed-n, at the end"], rows), ""]
    return "\n".join(parts)


def full(found: list[Cell]) -> str:
    parts = []
    for support, settings in SETTINGS.items():
        for kind in kinds(settings[0].support):
            rows = []
            for setting in settings:
                here = {c.strategy: c for c in found if (c.support, c.problem, c.kind) == (support, setting.name, kind)}
                rows.append([setting.name, *(f"{percent(c.ever)} / {percent(c.at_end)}" for c in here.values())])
            parts += [f"## {support} arms, {kind}", "", table(["arms", *BUILT_IN], rows), ""]
    return "\n".join(parts)


def width_table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for law in WIDTHS:
        by = {(row["kind"], row["t"]): row["width"] for row in rows if row["law"] == law}
        for kind in dict.fromkeys(kind for kind, _ in by):
            cells = [f"{by[kind, t]:.3g}" if math.isfinite(by[kind, t]) else "—" for t in MARKS]
            lines.append([law, kind, *cells])
    return table(["arm", "kind", *(f"t = {t:,}" for t in MARKS)], lines)


def short(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the short table of widths."""
    return [row for row in rows if row["law"] in SHORT and row["kind"] in (SHORT[row["law"]], "fixed-n")]


HEAD = f"""# Coverage of the intervals

How often a {LEVEL:.0%} interval misses, for three arms simultaneously, under every strategy. What it means is in
[intervals](../explanation/intervals.md).

Each cell has two percentages: of runs in which an interval missed its mean at any time, from the arm's first sample to
its last; and of runs in which one missed it at the end. Betting guarantees that the first is at
most {percent(1 - LEVEL)}. Fixed-n would guarantee it for the second if the numbers of samples had been fixed. The
standard error of a share near 5% is {percent(math.sqrt(0.05 * 0.95 / RUNS))}.

`make docs` measures the tables with fixed seeds (`benchmarks/coverage.py`): {RUNS:,} runs of three arms and {BUDGET:,}
samples for each problem and strategy.
"""

WIDE = """## Widths

Mean widths of 95% intervals for one arm alone, in 40 streams of samples. The last row of each group is the hedged
capital interval of Waudby-Smith and Ramdas, the yardstick for bounded arms. Its cost for a sample grows with the number
of candidate means or of samples, so it is not offered here. Betting is within some 20% of its width, often narrower,
and has a fixed cost.
"""


def fill(page: str, **blocks: str) -> str:
    """Return the page with the text between the comments `name` and `/name` replaced."""
    for name, text in blocks.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        found = page.count(start)
        if found != 1:
            raise ValueError(f"the page must have one place for {name!r}, got {found}")
        before, rest = page.split(start)
        page = before + start + text.rstrip() + "\n" + rest[rest.index(end) :]
    return page


def main() -> None:
    found = [cell for support, settings in SETTINGS.items() for setting in settings for cell in cells(support, setting)]
    wide = widths()
    picture(ever_missed(eq.Uniform(), (0, 1), 10_000, RUNS), wide, DOCS / "figures" / "intervals.png")
    (DOCS / "reference" / "coverage.md").write_text(f"{HEAD}\n{full(found)}\n{WIDE}\n{width_table(wide)}\n")
    page = DOCS / "explanation" / "intervals.md"
    cost = table(["kind", "memory for an arm", "a sample", "a look at an arm"], costs())
    page.write_text(fill(page.read_text(), coverage=summary(found), widths=width_table(short(wide)), costs=cost))
    print(summary(found), width_table(wide), cost, sep="\n\n")
    print(json.dumps([asdict(cell) for cell in found], ensure_ascii=False))


if __name__ == "__main__":
    main()
