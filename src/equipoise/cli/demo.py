"""The command `equipoise demo`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.options import Json
from equipoise.cli.output import console, print_json, progress_bar

if TYPE_CHECKING:
    from rich.table import Table

    from equipoise.study import Result


def demo(
    customers: Annotated[int, typer.Option(help="How many customers to ask in each poll.")] = 3000,
    seed: Annotated[int, typer.Option(help="Seed of the made-up customers; the same seed gives the same answers.")] = 1,
    as_json: Json = False,
) -> None:
    """Poll made-up customers about six products, adaptively and evenly, and compare."""
    from equipoise.demo import comparison, poll

    results = {}
    with progress_bar() as progress:
        for strategy in ("auto", "uniform"):
            task = progress.add_task(strategy, total=customers)
            results[strategy] = poll(strategy, customers, seed, partial(progress.advance, task))
            progress.update(task, completed=customers)
    if as_json:
        print_json({name: result.to_dict() for name, result in results.items()})
        return
    screen = console()
    screen.print(_table(results["auto"], results["uniform"]))
    screen.print(comparison(results["auto"], results["uniform"]))


def _table(auto: Result, uniform: Result) -> Table:
    from rich.table import Table

    table = Table(
        title=f"{auto.samples:,} customers, six products: the share who like each, in percent",
        caption="±: half-width of the 95% interval, all six products at once.",
    )
    table.add_column("product")
    for name in ("auto", "even split"):
        for title in (f"{name}:\nasked", "\nlike it", "\n±"):
            table.add_column(title, justify="right")
    polls = [(result, result.intervals(0.95).half_widths) for result in (auto, uniform)]
    for k, product in enumerate(auto.arms):
        cells = []
        for result, half_widths in polls:
            cells += [
                f"{result.counts[product]:,}",
                f"{100 * result.means[product]:.1f}",
                f"{100 * half_widths[k]:.1f}",
            ]
        table.add_row(str(product), *cells)
    return table
