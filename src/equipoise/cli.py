"""The command line: parse, call, print."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import equipoise
from equipoise import demo as poll
from equipoise.errors import EquipoiseError

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
    with Progress(
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    ) as progress:
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


def main() -> None:
    """Run a command. Wrong input is answered with one sentence on standard error and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except (ValueError, TypeError, EquipoiseError) as error:
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
