"""The command `equipoise demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.options import Json
from equipoise.cli.output import console, print_json, progress_bar

if TYPE_CHECKING:
    from rich.table import Table

    from equipoise.result import Result


def demo(
    customers: Annotated[int, typer.Option(help="How many customers to ask in each poll.")] = 3000,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
    as_json: Json = False,
) -> None:
    """Poll made-up customers about six products, adaptively and evenly, and compare."""
    from equipoise.demo import comparison, poll

    results = {}
    with progress_bar(thread=False) as progress:

        def asked(some: int) -> None:
            progress.advance(task, some)
            progress.refresh()

        for strategy in ("auto", "uniform"):
            task = progress.add_task(strategy, total=customers)
            results[strategy] = poll(strategy, customers, seed, asked)
            progress.update(task, completed=customers)
    if as_json:
        print_json({name: result.to_dict() for name, result in results.items()})
        return
    screen = console()
    screen.print(_table(results["auto"], results["uniform"]))
    screen.print(comparison(results["auto"], results["uniform"]))


def _table(auto: Result, uniform: Result) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title=f"{auto.samples:,} customers, six products: the share who like each, in percent",
        caption="95% intervals, simultaneous over the six products.",
    )
    table.add_column("\nproduct", no_wrap=True)
    for name in ("auto", "even"):
        for title in (f"{name}:\nasked", "\nlike it", "\n95% interval"):
            table.add_column(title, justify="right", no_wrap=True)
    polls = [(result, result.intervals(0.95)) for result in (auto, uniform)]
    for product in auto.arms:
        cells = []
        for result, intervals in polls:
            low, high = intervals[product]
            cells += [
                f"{result.counts[product]:,}",
                f"{100 * result.means[product]:.1f}",
                f"{100 * low:.1f} to {100 * high:.1f}",
            ]
        table.add_row(str(product), *cells)
    return table
