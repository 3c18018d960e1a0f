"""The command line: parse, call, print. One file for each command."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from equipoise.cli import bench, demo, exits, leaderboard, output, paper, plan, report, run, serve, simulate

__all__ = ["app", "main"]


def _flags_without_values(params: list[Any]) -> list[Any]:
    """Return options of a command; for those that take no value, typer's --help among them, help shows none."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_values(super().get_params(ctx))


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_values(super().get_params(ctx))


class _Bench(_Command):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {name for param in self.get_params(ctx) for name in param.opts if name.startswith("-")}
        return super().parse_args(ctx, bench.joined(args, options))


app = typer.Typer(
    name="equipoise",
    cls=_Group,
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
    app.command(cls=_Bench if _command is bench.bench else _Command)(_command)


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
    output.replace_unprintable()
    sys.exit(int(exits.code_of(app)))
