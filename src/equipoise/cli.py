"""The command line: parse, call, print."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import equipoise
from equipoise import chart
from equipoise import demo as poll
from equipoise import report as reports
from equipoise.errors import EquipoiseError
from equipoise.lab import Curve, suite, texts
from equipoise.lab import leaderboard as boards
from equipoise.lab.paper import PAPER_RUNS, Design, reproduce
from equipoise.plan import Plan, parse, read
from equipoise.run import spec
from equipoise.study import Result

app = typer.Typer(
    name="equipoise",
    help="Spend a sampling budget so that every mean is estimated equally well.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"equipoise {equipoise.__version__}")
        raise typer.Exit


@app.callback()
def _equipoise(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


@app.command()
def demo(
    customers: Annotated[int, typer.Option(help="How many customers to ask.")] = poll.CUSTOMERS,
    seed: Annotated[int, typer.Option(help="Which made-up customers; the same seed, the same answers.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print both results as one JSON object.")] = False,
) -> None:
    """Poll made-up customers about six products, with the default strategy and evenly, and compare."""
    if seed < 0:
        raise ValueError(f"seed={seed} will not do; it must not be negative")
    results = {}
    with _progress() as progress:
        for strategy in ("auto", "uniform"):
            task = progress.add_task(strategy, total=customers)
            results[strategy] = poll.poll(strategy, customers, seed, partial(progress.advance, task))
            progress.update(task, completed=customers)
    auto, uniform = results["auto"], results["uniform"]
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results.items()}))
        return
    table = Table(title=f"{customers:,} customers, six products: who likes what, in percent")
    table.add_column("product")
    for strategy in ("auto", "evenly"):
        for title in (f"{strategy}:\nasked", "\nlike it", "standard\nerror"):
            table.add_column(title, justify="right")
    for product in auto.arms:
        cells = []
        for result in (auto, uniform):
            cells += [
                f"{result.counts[product]:,}",
                f"{100 * result.means[product]:.1f}",
                f"{100 * result.standard_errors[product]:.2f}",
            ]
        table.add_row(str(product), *cells)
    console = Console(highlight=False)
    console.print(table)
    console.print(poll.gain(auto, uniform))


@app.command()
def run(
    study: Annotated[Path | None, typer.Argument(help="The study, a TOML file; --example prints one.")] = None,
    budget: Annotated[str | None, typer.Option(help="At most so many samples, instead of the file's.")] = None,
    precision: Annotated[
        str | None, typer.Option(help="Stop at this half-width of every mean, such as 0.05 or 2%.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="How many samples at the same time.")] = None,
    store: Annotated[str | None, typer.Option(help="Keep every sample in this file or PostgreSQL URL.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    example: Annotated[bool, typer.Option("--example", help="Print an example of a study and end.")] = False,
) -> None:
    """
    Run a study of shell commands, a table or a Python function.

    Exit code: 0 if the precision was reached, or none was asked for; 1 if it was not reached; 2 for wrong input; 3 if a
    sample failed for good; 130 after Ctrl-C.
    """
    if example:
        print(spec.EXAMPLE, end="")
        return
    if study is None:
        raise ValueError("a study is needed, as in: equipoise run study.toml (equipoise run --example prints one)")
    loaded = spec.load(study, budget=_number(budget), precision=_number(precision), jobs=jobs, store=store)
    live = reports.Live(loaded.level, sys.stderr.isatty())
    said = ""
    trace: list[str] = []
    try:
        with live:
            result = loaded.run(live)
        code = 1 if result.reached is False else 0
    except (KeyboardInterrupt, EquipoiseError) as stop:
        if isinstance(stop, EquipoiseError) and not stop.reason:
            raise
        code, said = (3, f"{stop.reason}; ") if isinstance(stop, EquipoiseError) else (130, "stopped; ")
        if "function" in loaded.about:  # a sentence does not say which line of it
            trace = getattr(stop, "__notes__", [])
        taken = live.last.samples if live.last else 0
        samples = f"{taken:,} sample{'s' * (taken != 1)}"
        said += (
            f"{samples} in {loaded.store}, and the same command goes on from there"
            if loaded.store
            else f"{samples} in all, and none is kept; with --store study.db the same command would go on"
        )
    if live.last and (live.last.samples or as_json):
        _show_run(live.last.result, loaded, code, as_json)
    for line in (*trace, f"equipoise: {said}" if said else ""):
        if line:
            print(line, file=sys.stderr)
    raise typer.Exit(code)


def _show_run(result: Result, loaded: spec.Spec, code: int, as_json: bool) -> None:
    if as_json:
        known = reports.plain(result, loaded.level)
        known |= {"precision": loaded.precision, "precision_reached": result.reached, "exit": code}
        if result.reached:
            known["evenly"] = reports.evenly(result, loaded.precision, loaded.level)
        print(json.dumps(known, ensure_ascii=False, allow_nan=False))
        return
    console = Console(highlight=False)
    console.print(reports.table(result, loaded.level))
    console.print(escape(reports.certificate(result, loaded.level)))
    if code in (0, 1) and result.precision is not None:
        said = result.precision.missed(result) if code else reports.saving(result, loaded.precision, loaded.level)
        console.print(said, markup=False)


def _number(text: str | None) -> int | float | str | None:
    """A number where it is one; other texts are for others to judge."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text) if text is not None else None
    return text


@app.command()
def report(
    store: Annotated[str, typer.Argument(help="The file or PostgreSQL URL of a study; #name for one of several.")],
    html: Annotated[Path | None, typer.Option(help="Write one page with everything to this .html file.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw the charts to this .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
) -> None:
    """Show a study that is kept in a store, also while it runs."""
    for target in (html, png):
        if target and not target.absolute().parent.is_dir():
            raise ValueError(f"{target} cannot be written: there is no folder {target.parent}")
    if html or png:
        chart.require()
    found = reports.read(store)
    if png:
        reports.png(found, png)
    if html:
        html.write_text(reports.page(found), encoding="utf-8")
    if as_json:
        print(json.dumps(reports.to_dict(found), ensure_ascii=False, allow_nan=False))
        return
    console = Console(highlight=False)
    console.print(reports.table(found.result, found.level, found.name))
    for sentence in reports.facts(found):
        console.print(sentence, markup=False)


@app.command()
def simulate(
    laws: Annotated[
        list[str], typer.Argument(help="The arms, as in: gaussian:0,4 rademacher bernoulli:0.3.", metavar="LAW...")
    ],
    strategy: Annotated[
        list[str] | None, typer.Option(help="auto, or another; again for more. Parameters as in b-as:exploration=0.5.")
    ] = None,
    budget: Annotated[
        list[float] | None,
        typer.Option(help="Samples of a study, or money with --costs, 1000 if not given; again for more."),
    ] = None,
    runs: Annotated[int, typer.Option(help="How many studies of each.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Which samples; the same seed, the same samples.")] = 1,
    support: Annotated[str | None, typer.Option(help="What the studies declare: binary, or low,high.")] = None,
    estimator: Annotated[str, typer.Option(help="auto, naive, wald, controls or gaussian.")] = "auto",
    in_flight: Annotated[int, typer.Option(help="Pulls kept in flight: answers come so much later.")] = 1,
    objective: Annotated[
        str, typer.Option(help="p of the norm of the losses, inf for the largest, or as in stratified:0.3,0.7.")
    ] = "inf",
    weights: Annotated[str | None, typer.Option(help="On the arms' losses, as in 1,2,3.")] = None,
    costs: Annotated[
        str | None, typer.Option(help="Of one sample of each arm, as in 1,2,3; the budget is then money.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as a JSON array.")] = False,
    to_csv: Annotated[Path | None, typer.Option("--csv", help="Write the table to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw regret against n to this .png, .svg or .html file.")] = None,
) -> None:
    """Simulate studies of arms whose laws are known, and measure what they lose against the best allocation."""
    problem = equipoise.Problem([texts.law(text) for text in laws])
    strategies = [texts.strategy(text) for text in strategy or ["auto"]]
    _writable(to_csv, plot)
    with _progress() as progress:
        task = progress.add_task("simulating", total=None)
        curve: Curve = equipoise.simulate(
            problem,
            strategies,
            [int(n) if n.is_integer() else n for n in budget or [1000.0]],
            runs=runs,
            seed=seed,
            support=texts.support(support),
            estimator=estimator,
            in_flight=in_flight,
            objective=texts.objective(objective),
            weights=texts.numbers(weights),
            costs=texts.numbers(costs),
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if to_csv:
        _write(to_csv, curve.rows())
    if plot:
        chart.save(curve.plot(), plot)
    if as_json:
        print(json.dumps([chart.plain(sim.to_dict()) for sim in curve], ensure_ascii=False, allow_nan=False))
        return
    Console(highlight=False).print(_simulated(curve))


# A column for the loss of each arm, where there are no more of them.
FEW_ARMS = 4


def _simulated(curve: Curve) -> Table:
    problem, objective = curve[0].problem, curve[0].objective
    late = f", {curve[0].in_flight:,} in flight" if curve[0].in_flight > 1 else ""
    norm = "largest loss" if objective.p == math.inf else f"{objective.p:g}-norm of the losses"
    weighted = f"{norm} times weights" if objective.weights is not None else norm
    best = "Σ/n" if objective.plain else "the smallest possible"
    table = Table(
        title=f"{', '.join(map(repr, problem.arms[:FEW_ARMS]))}{', ...' if len(problem) > FEW_ARMS else ''}: "
        f"{curve[0].runs:,} runs{late}, estimated by {' and '.join(dict.fromkeys(curve[0].estimator))}",
        caption=f"± one standard error. Regret: the {weighted} less {best}; excess: that in percent of {best}.",
        show_lines=True,
    )
    table.add_column("strategy", overflow="fold")
    shown = range(len(problem)) if len(problem) <= FEW_ARMS else ()
    n = "n" if objective.costs is None else "budget"
    for title in (n, *(f"loss {k + 1}" for k in shown), "regret", f"{n}^1.5 regret", "excess %"):
        table.add_column(title, justify="right")
    for sim, row in zip(curve, curve.rows(), strict=True):
        table.add_row(
            row["strategy"],
            f"{sim.budget:,}" if objective.costs is None else f"{sim.budget:,g}",
            *(_with_error(sim.losses[k], sim.loss_errors[k]) for k in shown),
            *(
                _with_error(row[name], row[error])
                for name, error in (
                    ("regret", "regret_error"),
                    ("rescaled_regret", "rescaled_error"),
                    ("excess", "excess_error"),
                )
            ),
        )
    return table


def _with_error(value: float, error: float) -> str:
    return f"{value:.4g}\n±{error:.1g}"


@app.command()
def paper(
    out: Annotated[Path, typer.Option(help="The folder for figures, tables and the page.")] = Path("equipoise-paper"),
    runs: Annotated[int, typer.Option(help="How many runs of each; the paper had 50,000.")] = PAPER_RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="Print claims and tables as one JSON object.")] = False,
) -> None:
    """Reproduce the paper's experiments, and judge its claims by the results."""
    design = Design(runs=runs)
    chart.require()
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} will not do; it is a file, and a folder is needed")
    try:
        with _progress(counts=False) as progress:
            task = progress.add_task("", total=None)
            found = reproduce(
                out,
                design,
                lambda done, total, what: progress.update(
                    task, completed=done, total=total, description=f"{what:>40.40}"
                ),
            )
    except KeyboardInterrupt:
        print(
            f"equipoise: stopped; what is done is kept in {out}, and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
        return
    table = Table(title=f"The paper's claims, {runs:,} runs", show_lines=True)
    for title in ("the paper says", "measured, and why not", "holds"):
        table.add_column(title)
    for claim in found.claims:
        table.add_row(
            f"{escape(claim.claim)}\n[dim]{claim.where}[/dim]",
            escape(claim.measured) + (f"\n[dim]{escape(claim.why)}[/dim]" if claim.why else ""),
            "yes" if claim.holds else "[bold]NO[/bold]",
        )
    console = Console(highlight=False)
    console.print(table)
    console.print(
        f"{sum(claim.holds for claim in found.claims)} of {len(found.claims)} hold. "
        f"Figures, tables and the page: {found.files[0]}"
    )


@app.command()
def leaderboard(
    strategy: Annotated[
        list[str] | None, typer.Option(help="All that are no oracle, if not given; again for more. As in simulate.")
    ] = None,
    problem: Annotated[
        list[str] | None, typer.Option(help="Of the suite, as in gauss-2 or 'binary-*'; again for more.")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs of each pair; if not given, as its error asks.")] = None,
    engine: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    to_csv: Annotated[Path | None, typer.Option("--csv", help="Write a row for each pair to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw all pairs to this .png, .svg or .html file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as one JSON object.")] = False,
) -> None:
    """Measure every strategy on every problem of the suite: how far it stays behind the best allocation."""
    lines, cases = boards.entries(strategy), boards.problems(problem)
    _writable(to_csv, plot)
    if problem is None and (missing := suite.left_out()):
        print(f"equipoise: {missing}", file=sys.stderr)
    with _progress() as progress:
        task = progress.add_task("measuring", total=None)
        board = boards.leaderboard(
            lines,
            cases,
            runs,
            engine=engine,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if to_csv:
        _write(to_csv, board.rows())
    if plot:
        chart.save(board.plot(), plot)
    if as_json:
        print(json.dumps(board.to_dict(), ensure_ascii=False, allow_nan=False))
        return
    console = Console(highlight=False)
    for table in _standings(board):
        console.print(table)


def _standings(board: boards.Board) -> list[Table]:
    """Who does how well, on continuous and on binary problems; and on those with enough to learn from."""
    names = board.strategies()
    tables = []
    for kind in ("continuous", "binary"):
        cells = [cell for cell in board.cells if cell.case.kind == kind]
        if not cells:
            continue
        runs = [cell.runs for cell in cells]
        runs_each = " to ".join(f"{each:,}" for each in dict.fromkeys((min(runs), max(runs))))
        how_many = len({cell.case.name for cell in cells})
        table = Table(
            title=f"{how_many} {kind} problem{'s'[: how_many > 1]}: excess over the best loss, in percent",
            caption=f"± one standard error; {runs_each} runs, seed {board.seed}",
        )
        for title in ("strategy", "worst", "where", "90th", "median"):
            table.add_column(title, justify="left" if title in ("strategy", "where") else "right", no_wrap=True)
        for name in board.strategies(kind):
            if found := board.summary(name, kind):
                table.add_row(name, _worst(found), found.where, _percent(found.ninth), _percent(found.median))
        tables.append(table)
    halves = [f"{half}, {kind}" for kind in ("continuous", "binary") for half in ("tuning", "held-out")]
    halves = [half for half in halves if any(board.summary(name, half) for name in names)]
    table = Table(title="Worst on what the default was tuned on, and held out")
    table.add_column("strategy")
    for half in halves:
        table.add_column(boards.GROUPS[half][0].replace(", ", ",\n"), justify="right")
    for name in names:
        found_there = (board.summary(name, half) for half in halves)
        table.add_row(name, *(_worst(found) if found else "" for found in found_there))
    tables.append(table)
    groups = [group for group in ("enough", "ones") if any(board.summary(name, group) for name in names)]
    limits = {name: board.over_limit(name) for name in names}
    long = any(limit is not None for limit in limits.values())
    if groups or long:
        table = Table(title="Where there is enough to learn from")
        table.add_column("strategy")
        for group in groups:
            table.add_column(f"{boards.GROUPS[group][0]}: worst")
        if long:
            table.add_column("continuous, n/K ≥ 200: median over the limit", justify="right")
        for name in names:
            limit = limits[name]
            shown = [
                f"{_worst(each)}\n[dim]{each.where}[/dim]" if each else ""
                for each in (board.summary(name, group) for group in groups)
            ]
            table.add_row(name, *shown, *([f"{limit:,.1f}" if limit is not None else ""] if long else []))
        tables.append(table)
    return tables


def _worst(found: boards.Summary) -> str:
    return f"{_percent(found.worst)} ±{_percent(found.error)}"


def _percent(excess: float) -> str:
    return f"{excess:,.1f}" if excess < 99.95 else f"{excess:,.0f}"


@app.command()
def plan(
    guesses: Annotated[
        Path | None,
        typer.Argument(help="A CSV file: arm, variance or sd, and if wanted weight, cost, floor, cap, population."),
    ] = None,
    variance: Annotated[list[str] | None, typer.Option(help="As in a=4, for each arm.", metavar="ARM=NUMBER")] = None,
    budget: Annotated[float | None, typer.Option(help="How many samples; with costs, how much money.")] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(help="The half-width to reach: one number, or as in a=0.1.", metavar="[ARM=]NUMBER"),
    ] = None,
    level: Annotated[float, typer.Option(help="With what probability all intervals hold together.")] = 0.95,
    objective: Annotated[
        str, typer.Option(help="inf: the largest loss; 1: the sum of the losses; p: their p-norm.", metavar="P")
    ] = "inf",
    weight: Annotated[list[str] | None, typer.Option(help="On a loss; 1 if not given.", metavar="ARM=NUMBER")] = None,
    cost: Annotated[list[str] | None, typer.Option(help="Of a sample; 1 if not given.", metavar="ARM=NUMBER")] = None,
    floor: Annotated[list[str] | None, typer.Option(help="The least samples.", metavar="[ARM=]NUMBER")] = None,
    cap: Annotated[list[str] | None, typer.Option(help="The most samples.", metavar="[ARM=]NUMBER")] = None,
    population: Annotated[
        list[str] | None, typer.Option(help="How many there are to draw from.", metavar="[ARM=]NUMBER")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print plan and curve as one JSON object.")] = False,
    to_csv: Annotated[Path | None, typer.Option("--csv", help="Write the counts to this file.")] = None,
    curve: Annotated[Path | None, typer.Option(help="Write error against spend to this CSV file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw error against spend to this .png, .svg or .html file.")
    ] = None,
) -> None:
    """Allocate a budget over arms of known or guessed variance, and say what it will buy."""
    arguments: dict[str, Any] = read(guesses) if guesses else {}
    given = {
        "variances": _by_name("variance", variance),
        "precision": _by_name("precision", precision, alone=True),
        "weights": _by_name("weight", weight),
        "costs": _by_name("cost", cost),
        "floors": _by_name("floor", floor, alone=True, is_whole=True),
        "caps": _by_name("cap", cap, alone=True, is_whole=True),
        "populations": _by_name("population", population, alone=True, is_whole=True),
    }
    for name, value in given.items():
        if isinstance(value, dict):
            arguments[name] = arguments.get(name, {}) | value
        elif value is not None:
            arguments[name] = value
    if not arguments.get("variances"):
        raise ValueError("no variances were given; --variance a=4 --variance b=1 or a CSV file would do")
    for name in ("weights", "costs"):
        if name in arguments:
            arguments[name] = dict.fromkeys(arguments["variances"], 1.0) | arguments[name]
    _writable(to_csv, curve, plot)
    p = parse(f"--objective {objective}", objective, False)
    with _progress(counts=False) as progress:
        progress.add_task("planning", total=None)
        found = equipoise.plan(**arguments, budget=budget, level=level, objective=p)
        rows = found.curve()
    for target, table in ((to_csv, found.rows()), (curve, rows)):
        if target:
            _write(target, table)
    if plot:
        chart.save(found.plot(rows), plot)
    if as_json:
        print(json.dumps(json.loads(found.to_json()) | {"curve": rows}, ensure_ascii=False, allow_nan=False))
        return
    print(found)
    Console(highlight=False).print(_spends(found, rows))


def _by_name(option: str, texts: list[str] | None, alone: bool = False, is_whole: bool = False) -> Any:
    """{name: number} from texts like name=number; with `alone`, a number where that is all there is."""
    found: dict[str, float] = {}
    for text in texts or []:
        name, equals, value = text.rpartition("=")  # a name may have one too
        what = f"--{option} {text}"
        if not equals and alone and len(texts or []) == 1:
            return parse(what, text, is_whole)
        if not equals or not name.strip():
            raise ValueError(f"{what} will not do; it must name its arm, as in a=4")
        if name.strip() in found:
            raise ValueError(f"{what} will not do; --{option} of {name.strip()!r} was given before")
        found[name.strip()] = parse(what, value, is_whole)
    return found or None


def _spends(found: Plan, rows: list[dict[str, float]]) -> Table:
    money = found.terms.objective.costs is not None
    table = Table(title=f"Error: the {found.error_title}")
    for title in (*(["money"] if money else []), "samples", "error", "half-width", "even split:\nerror"):
        table.add_column(title, justify="right")
    for row in rows:
        cells = [f"{row[name]:.4g}" for name in ("error", "half_width", "uniform_error")]
        table.add_row(
            *([f"{row['spend']:,.10g}"] if money else []),
            f"{row['samples']:,}",
            *cells,
            style="bold" if row["spend"] == found.spend else "",
        )
    return table


def _writable(*targets: Path | None) -> None:
    """Refuse at once, rather than after the work, where a file cannot be written; the last one is a chart."""
    for target in targets:
        if target and not target.parent.is_dir():
            raise ValueError(f"{target} cannot be written: there is no folder {target.parent}")
    if targets[-1]:
        chart.suffix(targets[-1])
        chart.require()


def _write(target: Path, rows: list[dict[str, Any]]) -> None:
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _progress(counts: bool = True) -> Progress:
    """A bar on standard error, where a person watches."""
    return Progress(
        TextColumn("{task.description:>8}"),
        BarColumn(),
        *((MofNCompleteColumn(),) if counts else ()),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )


def main() -> None:
    """Run a command. Wrong input is answered with one sentence on standard error and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except (ValueError, TypeError, EquipoiseError) as error:
        _give_up(str(error))
    except OSError as error:  # no such folder, not ours to write, no room
        _give_up(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except typer.Abort:
        print("equipoise: stopped", file=sys.stderr)
        sys.exit(130)
    except ModuleNotFoundError as error:
        # Those of ours say what to install; Python's own carry the module's name and are mistakes.
        if error.name:
            raise
        _give_up(str(error))
    except Exception as error:
        # What the parser of the command line has to say, whichever library parses it.
        if not hasattr(error, "format_message"):
            raise
        _give_up(error.format_message())
    sys.exit(code if isinstance(code, int) else 0)


def _give_up(sentence: str) -> None:
    if sentence:  # none when the help was printed for want of a command
        print(f"equipoise: {sentence}", file=sys.stderr)
    sys.exit(2)
