"""The command `equipoise leaderboard`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise import tables
from equipoise.cli import exits
from equipoise.cli.options import CsvFile, Json
from equipoise.cli.output import check_chart, check_writable, console, half_width, print_json, progress_bar, write_csv

if TYPE_CHECKING:
    from rich.table import Table

    from equipoise.lab.leaderboard import Board, Summary


def leaderboard(
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="A strategy, as in equipoise simulate; repeat for several.", show_default="all but the oracle"
        ),
    ] = None,
    problem: Annotated[
        list[str] | None,
        typer.Option(
            help="A problem of the suite, as in gauss-2 or 'binary-*'; repeat for several.", show_default="all"
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            help="How many runs of each strategy on each problem.", show_default="as many as the standard error needs"
        ),
    ] = None,
    engine: Annotated[str, typer.Option(help="Where to simulate: cpu or cuda.")] = "cpu",
    to_csv: CsvFile = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw every strategy on every problem to this .png, .svg or .html file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure every strategy on every problem of the suite."""
    from equipoise import chart
    from equipoise.lab import leaderboard as boards
    from equipoise.lab import suite

    lines, cases = boards.entries(strategy), boards.problems(problem)
    check_writable(to_csv)
    check_chart(plot)
    if problem is None and (missing := suite.left_out()):
        exits.say(missing)
    with progress_bar() as progress:
        task = progress.add_task("measuring", total=None)
        board = boards.leaderboard(
            lines,
            cases,
            runs,
            engine=engine,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if to_csv:
        write_csv(to_csv, board.rows())
    if plot:
        chart.save(board.plot(), plot)
    if as_json:
        print_json(board.to_dict())
        return
    screen = console()
    for table in (_ranking(board, "continuous"), _ranking(board, "binary"), _halves(board), _long_studies(board)):
        if table is not None:
            screen.print(table)


def _ranking(board: Board, kind: str) -> Table | None:
    """Return the strategies from best to worst on one kind of problem."""
    from rich.table import Table

    cells = [cell for cell in board.cells if cell.case.kind == kind]
    if not cells:
        return None
    runs = [cell.runs for cell in cells]
    runs_each = " to ".join(f"{each:,}" for each in dict.fromkeys((min(runs), max(runs))))
    problems = tables.count(len({cell.case.name for cell in cells}), f"{kind} problem")
    table = Table(
        title=f"{problems}: excess over the best possible loss, in percent",
        caption=f"±: half-width of the 95% interval; {runs_each} runs, seed {board.seed}",
    )
    for title in ("strategy", "worst", "problem", "90th pct.", "median"):
        table.add_column(title, justify="left" if title in ("strategy", "problem") else "right", no_wrap=True)
    for name in board.strategies(kind):
        if found := board.summary(name, kind):
            table.add_row(name, _worst(found), found.where, _percent(found.ninth), _percent(found.median))
    return table


def _halves(board: Board) -> Table:
    """Return how each strategy does on the problems that the default was tuned on, and on the others."""
    from rich.table import Table

    from equipoise.lab.leaderboard import GROUPS

    names = board.strategies()
    halves = [f"{half}, {kind}" for kind in ("continuous", "binary") for half in ("tuning", "held-out")]
    halves = _measured(board, halves)
    table = Table(title="Worst excess: tuning and held-out problems")
    table.add_column("strategy")
    for half in halves:
        table.add_column(GROUPS[half][0].replace(", ", ",\n"), justify="right")
    for name in names:
        found_there = (board.summary(name, half) for half in halves)
        table.add_row(name, *(_worst(found) if found else "" for found in found_there))
    return table


def _long_studies(board: Board) -> Table | None:
    """Return how each strategy does on problems with enough samples for it to do well; None if there are none."""
    from rich.table import Table

    from equipoise.lab.leaderboard import GROUPS

    names = board.strategies()
    groups = _measured(board, ["enough", "ones"])
    limits = {name: board.over_limit(name) for name in names}
    long = any(limit is not None for limit in limits.values())
    if not groups and not long:
        return None
    table = Table(title="Worst excess: problems with enough samples")
    table.add_column("strategy")
    for group in groups:
        table.add_column(GROUPS[group][0])
    if long:
        table.add_column("continuous, n/K ≥ 200: median of excess / limit", justify="right")
    for name in names:
        limit = limits[name]
        cells = [
            f"{_worst(each)}\n[dim]{each.where}[/dim]" if each else ""
            for each in (board.summary(name, group) for group in groups)
        ]
        table.add_row(name, *cells, *([f"{limit:,.1f}" if limit is not None else ""] if long else []))
    return table


def _measured(board: Board, groups: Sequence[str]) -> list[str]:
    """Return the groups of problems on which some strategy was measured."""
    return [group for group in groups if any(board.summary(name, group) for name in board.strategies())]


def _worst(found: Summary) -> str:
    return f"{_percent(found.worst)} ±{_percent(half_width(found.error))}"


def _percent(excess: float) -> str:
    return f"{excess:,.1f}" if excess < 99.95 else f"{excess:,.0f}"
