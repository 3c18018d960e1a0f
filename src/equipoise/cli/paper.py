"""The command `equipoise paper`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli import exits
from equipoise.cli.exits import Exit
from equipoise.cli.options import Json
from equipoise.cli.output import console, print_json, progress_bar, writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from equipoise.lab.paper import Claim


def paper(
    out: Annotated[Path, typer.Option(help="The folder to write figures, tables and the page to.")] = Path(
        "equipoise-paper"
    ),
    runs: Annotated[int, typer.Option(help="How many runs of each experiment; the paper uses 50,000.")] = 50_000,
    as_json: Json = False,
) -> None:
    """Reproduce the paper's experiments and check its claims."""
    from equipoise import chart
    from equipoise.lab.paper import PaperDesign, reproduce
    from equipoise.report.page import environment

    design = PaperDesign(runs=runs)
    # Refused now, rather than after the work.
    chart.require()
    environment()
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder, got the file {out}")
    try:
        with writing(out), progress_bar(counts=False) as progress:
            task = progress.add_task("", total=None)
            found = reproduce(
                out,
                design,
                lambda done, total, what: progress.update(
                    task, completed=done, total=total, description=f"{what:>40.40}"
                ),
            )
    except KeyboardInterrupt:
        exits.say(f"stopped; the experiments that are done are saved in {out}; run the same command to continue")
        raise typer.Exit(Exit.INTERRUPTED) from None
    if as_json:
        print_json(found.to_dict())
        return
    screen = console()
    screen.print(_table(found.claims, runs))
    screen.print(
        f"{sum(claim.holds for claim in found.claims)} of {len(found.claims)} claims hold. "
        f"Figures, tables and the page are in {found.files[0]}"
    )


def _table(claims: Sequence[Claim], runs: int) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"The paper's claims, measured with {runs:,} runs", show_lines=True)
    for title in ("claim", "measured", "holds"):
        table.add_column(title)
    for claim in claims:
        table.add_row(
            f"{escape(claim.claim)}\n[dim]{claim.where}[/dim]",
            escape(claim.measured) + (f"\n[dim]{escape(claim.why)}[/dim]" if claim.why else ""),
            "yes" if claim.holds else "[bold]NO[/bold]",
        )
    return table
