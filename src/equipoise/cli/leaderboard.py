"""The command `equipoise leaderboard`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.base import tables
from equipoise.cli import exits
from equipoise.cli.options import CsvFile, Json, strategy_files, strategy_names, with_own_strategies
from equipoise.cli.output import check_writable, console, half_width, print_json, progress_bar, write_csv, writing

if TYPE_CHECKING:
    from rich.table import Table

    from equipoise.lab.board.cells import Cell
    from equipoise.lab.board.leaderboard import Board, Entry, Summary
    from equipoise.lab.suite import Case


def leaderboard(
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="A strategy: auto, b-as:exploration=0.5, or your own as FILE.py:CLASS; repeat for several.",
            show_default="all but the oracle",
            autocompletion=strategy_names,
        ),
    ] = None,
    problem: Annotated[
        list[str] | None,
        typer.Option(
            help="A problem of the suite, as in gauss-2 or 'binary-*'; repeat for several.", show_default="all"
        ),
    ] = None,
    unseen: Annotated[
        int | None,
        typer.Option(
            help="Measure on problems drawn with this seed instead of the suite: problems that nobody has tuned on.",
            metavar="SEED",
        ),
    ] = None,
    problems: Annotated[
        int | None, typer.Option(help="How many problems to draw with --unseen.", show_default="200")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            help="How many runs of each strategy on each problem, all consecutive: quick, and blind to rare failures.",
            show_default="as many as the standard error needs, and runs with quiet starts",
        ),
    ] = None,
    engine: Annotated[str, typer.Option(help="Where to simulate: cpu or cuda.")] = "cpu",
    to_csv: CsvFile = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw every strategy on every problem to this .png, .svg or .html file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """
    Measure every strategy on every problem of the suite, or on problems drawn at random.

    The whole suite takes one to two minutes on two cores, 200 drawn problems at most ten.
    """
    from equipoise import chart
    from equipoise.lab import suite
    from equipoise.lab.board import leaderboard as boards
    from equipoise.lab.random_problems import PROBLEMS, drawn

    check_writable(to_csv, chart=plot, inputs=strategy_files(strategy))
    lines: Sequence[Entry] = boards.entries(with_own_strategies(strategy))
    cases: Sequence[Case]
    if unseen is None:
        if problems is not None:
            raise ValueError(f"--problems must be given with --unseen, got --problems {problems} alone")
        cases = boards.problems(problem)
    else:
        if problem is not None:
            raise ValueError("--unseen draws all problems and must be given without --problem, got both")
        cases = drawn(unseen, PROBLEMS if problems is None else problems)
    if unseen is None and problem is None and (missing := suite.left_out()):
        exits.say(missing)
    with progress_bar() as progress:
        task = progress.add_task("measuring", total=None)
        board = boards.leaderboard(
            cases,
            lines,
            runs,
            engine=engine,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if to_csv:
        write_csv(to_csv, board.rows())
    if plot:
        with writing(plot):
            chart.save(board.plot(), plot)
    if as_json:
        print_json(board.to_dict() | {"unseen": unseen})
        return
    shown: list[Table | None]
    if unseen is None:
        shown = [_ranking(board, "continuous"), _ranking(board, "binary"), _long_studies(board)]
    else:
        shown = [part(board, group) for group in ("plain", "rare", "binary") for part in (_ranking, _hardest)]
    screen = console()
    for table in shown:
        if table is not None:
            screen.print(table)


def _ranking(board: Board, group: str) -> Table | None:
    """Return the strategies from best to worst on a group of problems; None without one."""
    from rich.table import Table

    from equipoise.lab.board.leaderboard import GROUPS

    cells = board.group(group)
    if not cells:
        return None
    runs = [cell.runs for cell in cells]
    runs_each = " to ".join(f"{each:,}" for each in dict.fromkeys((min(runs), max(runs))))
    problems = tables.count(len({cell.case.name for cell in cells}), "problem")
    table = Table(
        title=f"{problems}, {GROUPS[group][0]}: excess over the best possible loss, in percent",
        caption=f"±: half-width of the 95% interval; {runs_each} runs, seed {board.seed}",
    )
    for title in ("strategy", "worst", "90th pct.", "median", "worst ratio to\nan even split"):
        table.add_column(title, justify="left" if title == "strategy" else "right", overflow="fold")
    for name in board.strategies(group):
        if found := board.summary(name, group):
            ratio = f"{found.ratio:,.2f} ±{half_width(found.ratio_error):,.2f}"
            table.add_row(
                name,
                f"{_worst(found)}\n[dim]{found.where}[/dim]",
                _percent(found.ninth),
                _percent(found.median),
                f"{ratio}\n[dim]{found.ratio_where}[/dim]",
            )
    return table


def _hardest(board: Board, group: str) -> Table | None:
    """Return the problems on which the default strategy is at its worst; None if it was not measured."""
    from rich.table import Table

    found = board.hardest("auto", group)
    if not found:
        return None
    table = Table(title="Hardest for auto: excess in percent")
    for title in ("problem", "auto", "best other", "its excess"):
        table.add_column(title, justify="left" if title in ("problem", "best other") else "right", overflow="fold")
    for cell, other in found:
        best = (other.strategy, _measured_excess(other)) if other else ("", "")
        table.add_row(cell.case.name, _measured_excess(cell), *best)
    return table


def _long_studies(board: Board) -> Table | None:
    """Return how each strategy does on problems with enough samples for it to do well; None if there are none."""
    from rich.table import Table

    from equipoise.lab.board.leaderboard import GROUPS

    names = board.strategies()
    groups = [group for group in ("enough", "ones") if board.group(group)]
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


def _worst(found: Summary) -> str:
    return f"{_percent(found.worst)} ±{_percent(half_width(found.error))}"


def _measured_excess(cell: Cell) -> str:
    return f"{_percent(cell.excess)} ±{_percent(half_width(cell.error))}"


def _percent(excess: float) -> str:
    return f"{excess:,.1f}" if excess < 99.95 else f"{excess:,.0f}"
