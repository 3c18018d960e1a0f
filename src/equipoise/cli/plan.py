"""The command `equipoise plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equipoise.base import tables
from equipoise.cli.options import CsvFile, Json, by_arm, number
from equipoise.cli.output import check_writable, console, print_json, progress_bar, write_csv, writing

if TYPE_CHECKING:
    from rich.table import Table

    from equipoise.planning import Plan

EachArm = "ARM=NUMBER"
AllOrEachArm = "[ARM=]NUMBER"


def plan(
    guesses: Annotated[
        Path | None,
        typer.Argument(
            help="A CSV file with the columns arm and variance (or sd); weight, cost, floor, cap, population: optional."
        ),
    ] = None,
    variance: Annotated[
        list[str] | None, typer.Option(help="The variance of an arm, as in a=4; repeat for each arm.", metavar=EachArm)
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="How many samples to take; with costs, how much to spend.")
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(help="The half-width to reach: one number for all arms, or as in a=0.1.", metavar=AllOrEachArm),
    ] = None,
    level: Annotated[float, typer.Option(help="The probability that all intervals hold simultaneously.")] = 0.95,
    interval: Annotated[
        str | None,
        typer.Option(
            help="Which intervals: fixed-width or anytime, for a study that they stop; fixed-n for fixed counts.",
            metavar="KIND",
        ),
    ] = None,
    support: Annotated[str | None, typer.Option(help="binary for samples that are 0 or 1.", metavar="KIND")] = None,
    objective: Annotated[
        str,
        typer.Option(
            help="What to minimise: inf for the largest loss, 1 for the sum of the losses, p for their p-norm.",
            metavar="P",
        ),
    ] = "inf",
    weight: Annotated[
        list[str] | None, typer.Option(help="The weight of an arm's loss; 1 if not given.", metavar=EachArm)
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option(help="The cost of one sample of an arm; 1 if not given.", metavar=EachArm)
    ] = None,
    floor: Annotated[list[str] | None, typer.Option(help="Minimum samples of an arm.", metavar=AllOrEachArm)] = None,
    cap: Annotated[list[str] | None, typer.Option(help="Maximum samples of an arm.", metavar=AllOrEachArm)] = None,
    population: Annotated[
        list[str] | None,
        typer.Option(help="The size of an arm's population, if it is drawn without replacement.", metavar=AllOrEachArm),
    ] = None,
    as_json: Json = False,
    to_csv: CsvFile = None,
    curve: Annotated[Path | None, typer.Option(help="Write the expected error by budget to this CSV file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the expected error by budget to this .png, .svg or .html file.")
    ] = None,
) -> None:
    """Allocate a budget over arms whose variances are known or guessed."""
    import equipoise
    from equipoise import chart
    from equipoise.planning import read

    check_writable(to_csv, curve, chart=plot, inputs=[guesses])
    arguments: dict[str, Any] = read(guesses) if guesses else {}
    given = {
        "variances": by_arm("--variance", variance),
        "precision": by_arm("--precision", precision, alone=True),
        "weights": by_arm("--weight", weight),
        "costs": by_arm("--cost", cost),
        "floors": by_arm("--floor", floor, alone=True, whole=True),
        "caps": by_arm("--cap", cap, alone=True, whole=True),
        "populations": by_arm("--population", population, alone=True, whole=True),
    }
    for name, value in given.items():
        if isinstance(value, dict):
            arguments[name] = arguments.get(name, {}) | value
        elif value is not None:
            arguments[name] = value
    if not arguments.get("variances"):
        raise ValueError("no variances were given; use --variance a=4 --variance b=1, or a CSV file")
    for name in ("weights", "costs"):
        if name in arguments:
            arguments[name] = dict.fromkeys(arguments["variances"], 1.0) | arguments[name]
    arguments |= {"interval": interval, "support": support}
    if support not in (None, "binary"):
        raise ValueError(f"--support must be binary, got {support!r}")
    p = number("--objective", objective)
    if not p > 0:
        raise ValueError(f"--objective must be a positive number, or inf for the largest loss, got {objective!r}")
    with progress_bar(counts=False) as progress:
        progress.add_task("planning", total=None)
        found = equipoise.plan(**arguments, budget=budget, level=level, objective=p)
        rows = found.curve()
    for path, lines in ((to_csv, found.rows()), (curve, rows)):
        if path:
            write_csv(path, lines)
    if plot:
        with writing(plot):
            chart.save(found.plot(rows), plot)
    if as_json:
        print_json(json.loads(found.to_json()) | {"curve": rows})
        return
    print(found)
    if found.loss > 0:
        console().print(_curve_table(found, rows))


def _curve_table(found: Plan, rows: list[dict[str, float]]) -> Table:
    """Return the error to expect for smaller and larger budgets; the plan's own row is bold."""
    from rich.table import Table

    money = found.terms.objective.costs is not None
    table = Table(title=f"Expected error by budget ({found.error_title})")
    for title in (*(["cost"] if money else []), "samples", "error", "half-width", "even split:\nerror"):
        table.add_column(title, justify="right")
    for row in rows:
        cells = [tables.cell(row[name]) for name in ("error", "half_width", "uniform_error")]
        table.add_row(
            *([tables.amount(row["spend"], 10)] if money else []),
            f"{row['samples']:,}",
            *cells,
            style="bold" if row["spend"] == found.spend else "",
        )
    return table
