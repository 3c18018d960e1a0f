"""
The leaderboard of docs/reference/leaderboard.md: every strategy on every problem of the suite.

`make leaderboard` runs this. It writes the tables of docs/reference/leaderboard.md, docs/reference/leaderboard.csv with
a row for each strategy and problem, and docs/figures/leaderboard.png; the last line printed is one JSON object.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from equipoise import chart
from equipoise.lab.board.cells import Cell
from equipoise.lab.board.leaderboard import GROUPS, Board, Summary, leaderboard
from equipoise.lab.suite import Case, suite

DOCS = Path(__file__).parent.parent / "docs"
# The page lists where the default has an excess above the first, or is behind another strategy by more than the second.
HIGH, MARGIN = 40.0, 5.0


def main() -> None:
    board = leaderboard(progress=lambda done, total: print(f"\r{done} of {total}", end="", file=sys.stderr))
    write(board)
    print(json.dumps(board.to_dict() | {"cells": len(board.cells)}))


def write(board: Board) -> None:
    """Write the page's tables, the CSV file and the picture."""
    with (DOCS / "reference" / "leaderboard.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [{k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in board.rows()]
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    chart.save(board.plot(), DOCS / "figures" / "leaderboard.png", scale=1.6)
    page = DOCS / "reference" / "leaderboard.md"
    text = page.read_text(encoding="utf-8")
    for name, lines in parts(board).items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        text = before + start + "\n" + "\n".join(lines) + "\n\n" + end + rest.partition(end)[2]
    page.write_text(text, encoding="utf-8")


def parts(board: Board) -> dict[str, list[str]]:
    """Return what goes between the marks of the page."""
    runs, pools = [cell.runs for cell in board.cells], [cell.pool for cell in board.cells]
    errors = sorted(cell.error / (100 + cell.excess) for cell in board.cells)
    how = (
        f"{len(board.cells)} pairs, {min(runs):,} to {max(runs):,} runs each, {sum(runs):,} in all, out of "
        f"{min(pools):,} to {max(pools):,} whose starts were looked at, seed {board.seed}. "
        f"Half of the standard errors are below {100 * errors[len(errors) // 2]:.1f}% of the loss, nine in ten below "
        f"{100 * errors[len(errors) * 9 // 10]:.1f}%; in the tables they are in parentheses."
    )
    return {
        "how": [how],
        "continuous": standings(board, "continuous"),
        "binary": standings(board, "binary"),
        "enough": enough(board),
        "high": high(board),
        "behind": behind(board),
        "problems": described(),
    }


def standings(board: Board, kind: str) -> list[str]:
    lines = [
        "| strategy | worst | where | 90th percentile | median | worst ratio to an even split | where |",
        "|---|--:|---|--:|--:|--:|---|",
    ]
    for name in board.strategies(kind):
        if found := board.summary(name, kind):
            few = f" ({found.problems} problems)" if found.problems < len(board.of("auto")) // 10 else ""
            lines.append(
                f"| {name}{few} | {worst(found)} | {found.where} | {percent(found.ninth)} | {percent(found.median)} "
                f"| {found.ratio:.2f} ({found.ratio_error:.2f}) | {found.ratio_where} |"
            )
    return lines


def enough(board: Board) -> list[str]:
    titles = " | ".join(f"{GROUPS[group][0]}: worst | where" for group in ("enough", "ones"))
    lines = [
        f"| strategy | {titles} | continuous, n/K ≥ 200: median of excess over the limit | of Gaussian arms alone |",
        "|---|--:|---|--:|---|--:|--:|",
    ]
    for name in board.strategies():
        cells = [name]
        for group in ("enough", "ones"):
            found = board.summary(name, group)
            cells += [worst(found), found.where] if found else ["", ""]
        limits = [board.over_limit(name, gaussian) for gaussian in (False, True)]
        lines.append(
            "| " + " | ".join([*cells, *("" if limit is None else f"{limit:,.1f}" for limit in limits)]) + " |"
        )
    return lines


def high(board: Board) -> list[str]:
    lines = ["| problem | K | n/K | auto | best there | its excess |", "|---|--:|--:|--:|---|--:|"]
    for cell in sorted(board.of("auto"), key=lambda cell: -cell.excess):
        if cell.excess > HIGH:
            lines.append(compared(cell, best(board, cell.case)))
    return lines


def behind(board: Board) -> list[str]:
    lines = ["| problem | K | n/K | auto | best there | its excess |", "|---|--:|--:|--:|---|--:|"]
    for cell in board.of("auto"):
        other = best(board, cell.case)
        if cell.excess - other.excess > MARGIN and cell.excess <= HIGH:
            lines.append(compared(cell, other))
    return lines


def compared(cell: Cell, other: Cell) -> str:
    size = f"{len(cell.case.problem)} | {cell.case.per_arm:,.0f}"
    return f"| {cell.case.name} | {size} | {measured(cell)} | {other.strategy} | {measured(other)} |"


def best(board: Board, case: Case) -> Cell:
    return min((cell for cell in board.cells if cell.case.name == case.name), key=lambda cell: cell.excess)


def described() -> list[str]:
    lines = ["| problem | why | K | n | n/K | tails |", "|---|---|--:|--:|--:|---|"]
    for case in suite():
        tails = "binary" if case.kind == "binary" else case.tails
        size = f"{len(case.problem)} | {case.budget:,} | {case.per_arm:,.0f}"
        lines.append(f"| {case.name} | {case.why} | {size} | {tails} |")
    return lines


def worst(found: Summary) -> str:
    return f"{percent(found.worst)} ({percent(found.error)})"


def measured(cell: Cell) -> str:
    return f"{percent(cell.excess)} ({percent(cell.error)})"


def percent(excess: float) -> str:
    text = f"{excess:,.1f}" if abs(excess) < 99.95 else f"{excess:,.0f}"
    return "0.0" if text == "-0.0" else text


if __name__ == "__main__":
    main()
