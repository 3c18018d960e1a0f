"""The command line: parse, call, print. One file for each command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from equipoise.cli import bench, demo, exits, leaderboard, paper, plan, report, run, serve, simulate

__all__ = ["app", "main"]

app = typer.Typer(
    name="equipoise",
    help="Spend a sampling budget so that every mean is estimated equally well.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _command in (
    demo.demo,
    run.run,
    bench.bench,
    serve.serve,
    report.report,
    plan.plan,
    simulate.simulate,
    leaderboard.leaderboard,
    paper.paper,
):
    app.command()(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        import equipoise

        print(f"equipoise {equipoise.__version__}")
        raise typer.Exit


@app.callback()
def _equipoise(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line and exit; bad input is answered with one sentence and exit code 2."""
    sys.exit(int(exits.code_of(app)))
