"""The command `equipoise simulate`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from equipoise.base import tables
from equipoise.cli.options import CsvFile, Json, strategy_files, strategy_names, with_own_strategies
from equipoise.cli.output import check_writable, console, half_width, print_json, progress_bar, write_csv, writing

if TYPE_CHECKING:
    from rich.table import Table

    from equipoise.simulation import Curve

# With more arms than this, or on a narrow terminal, the table has no column for the loss of each.
FEW_ARMS: Final = 4
# Names of strategies are folded to as many characters; and no table is so wide.
_FOLDED: Final = 10
_ANY_WIDTH: Final = 1000


def simulate(
    laws: Annotated[
        list[str],
        typer.Argument(help="The law of each arm, as in gaussian:0,4 rademacher bernoulli:0.3.", metavar="LAW"),
    ],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="A strategy: auto, b-as:exploration=0.5, or your own as FILE.py:CLASS; repeat to compare several.",
            show_default="auto",
            autocompletion=strategy_names,
        ),
    ] = None,
    budget: Annotated[
        list[float] | None,
        typer.Option(
            help="Samples per study or, with --costs, the total cost; repeat for several.", show_default="1000"
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="How many studies to simulate for each strategy and budget.")] = 10_000,
    seed: Annotated[int, typer.Option(help="The seed; the same seed gives the same samples to every strategy.")] = 1,
    support: Annotated[
        str | None, typer.Option(help="The support that the studies declare: binary, or low,high.")
    ] = None,
    estimator: Annotated[
        str, typer.Option(help="How losses are estimated: auto, naive, wald, controls or gaussian.")
    ] = "auto",
    in_flight: Annotated[int, typer.Option(help="How many samples are pending at once.")] = 1,
    objective: Annotated[
        str,
        typer.Option(
            help="What to minimise: inf for the largest loss, p for the p-norm of the losses, or stratified:0.3,0.7."
        ),
    ] = "inf",
    weights: Annotated[str | None, typer.Option(help="The weights of the arms' losses, as in 1,2,3.")] = None,
    costs: Annotated[
        str | None, typer.Option(help="The cost of one sample of each arm, as in 1,2,3; the budget is then money.")
    ] = None,
    as_json: Json = False,
    to_csv: CsvFile = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw regret against the budget to this .png, .svg or .html file.")
    ] = None,
) -> None:
    """Simulate strategies on arms with known laws."""
    import equipoise
    from equipoise import chart
    from equipoise.simulation import texts
    from equipoise.strategies import label

    check_writable(to_csv, chart=plot, inputs=strategy_files(strategy))
    problem = equipoise.Problem([texts.law(text) for text in laws])
    strategies = [texts.strategy(text) for text in with_own_strategies(strategy) or ["auto"]]
    with progress_bar() as progress:
        task = progress.add_task("simulating", total=None)
        curve = equipoise.simulate_budgets(
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
        write_csv(to_csv, curve.rows())
    if plot:
        with writing(plot):
            chart.save(curve.plot(), plot)
    if as_json:
        print_json([sim.to_dict() for sim in curve])
        return
    screen = console()
    table = _table(curve, len(problem) <= FEW_ARMS)
    folded = max(max(len(label(each.strategy)) for each in curve) - _FOLDED, 0)
    if screen.measure(table, options=screen.options.update(max_width=_ANY_WIDTH)).maximum - folded > screen.width:
        table = _table(curve, False)
    screen.print(table)


def _table(curve: Curve, losses: bool) -> Table:
    """Return the table, with a column for the loss of each arm if that is wanted; no number is ever cut."""
    from rich.table import Table

    from equipoise.simulation.results import without_noise
    from equipoise.strategies import label

    first = curve[0]
    problem, objective = first.problem, first.objective
    in_flight = f", {first.in_flight:,} in flight" if first.in_flight > 1 else ""
    norm = "largest loss" if objective.p == math.inf else f"{objective.p:g}-norm of the losses"
    measured = f"weighted {norm}" if objective.weights is not None else norm
    best = "Σ/n" if objective.plain else "the smallest possible"
    sigma = ", the sum of the variances over n" if objective.plain else ""
    table = Table(
        title=f"{', '.join(map(repr, problem.arms[:FEW_ARMS]))}{', ...' if len(problem) > FEW_ARMS else ''}: "
        f"{first.runs:,} runs{in_flight}, estimator: {' and '.join(dict.fromkeys(first.estimator))}",
        caption=f"Regret: the {measured} minus {best}. Excess: the regret as a percentage of {best}{sigma}. "
        "±: half-width of the 95% interval.",
        show_lines=True,
    )
    widest = max(len(label(sim.strategy)) for sim in curve)
    table.add_column("strategy", overflow="fold", min_width=min(_FOLDED, widest))
    shown = range(len(problem)) if losses else ()
    n = "n" if objective.costs is None else "budget"
    for title in (n, *(f"loss\n(arm {k + 1})" for k in shown), "regret", f"{n}^1.5 regret", "excess %"):
        table.add_column(title, justify="right", overflow="fold")
    for sim in curve:
        table.add_row(
            label(sim.strategy),
            tables.amount(sim.budget, 10),
            *(_measured(*without_noise(sim.best, sim.losses[k], sim.loss_errors[k])) for k in shown),
            _measured(*without_noise(sim.best, sim.regret, sim.regret_error)),
            _measured(*sim.shown_rescaled),
            _measured(*sim.shown_excess),
        )
    return table


def _measured(value: float, error: float) -> str:
    return f"{tables.cell(value)}\n±{tables.cell(half_width(error), 2)}"
