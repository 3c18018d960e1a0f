"""The command `equipoise run`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.base import tables
from equipoise.base import terminal as people
from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.cli import exits
from equipoise.cli.exits import Exit
from equipoise.cli.options import Json, number_or_text
from equipoise.cli.output import console, print_json

if TYPE_CHECKING:
    from equipoise.result import Result
    from equipoise.run.progress import Progress
    from equipoise.run.spec import Spec


def run(
    study: Annotated[
        Path | None, typer.Argument(help="The study, as a TOML file; equipoise run --example prints one.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Take at most this many samples; overrides the budget in the file.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="Stop when every mean is known to ± this (95%): 0.05, or 2% for a share of the mean."),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            help="Which intervals decide: fixed-width, for stopping by their widths alone, or anytime.", metavar="KIND"
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="How many samples to take at the same time.")] = None,
    store: Annotated[
        str | None, typer.Option(help="Save every sample in this file or PostgreSQL database, to continue later.")
    ] = None,
    as_json: Json = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", metavar="", help="Also print the certificate: how good the result is, and its caveats."
        ),
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", metavar="", help="Print an example of a study file and exit.")
    ] = False,
) -> None:
    """
    Run a study of shell commands, a table or a Python function.

    Exit codes: 0 success; 1 precision not reached; 2 invalid input;
    3 sampling failed; 128 + n ended by signal n (130 for Ctrl-C).
    """
    from equipoise import report
    from equipoise.run import spec

    if example:
        print(spec.EXAMPLE, end="")
        return
    if study is None:
        raise ValueError("no study was given; use equipoise run study.toml (equipoise run --example prints one)")
    loaded = spec.load(
        study,
        budget=number_or_text(budget),
        precision=number_or_text(precision),
        interval=interval,
        jobs=jobs,
        store=store,
    )
    live = report.Live(people.terminal())
    ending = ""
    trace: list[str] = []
    with exits.Signals() as signals:
        try:
            with live:
                result = loaded.run(live)
            code: int = Exit.NOT_REACHED if result.reached is False else Exit.SUCCESS
        except exits.Ended as error:
            code, ending = error.code, str(error)
        except KeyboardInterrupt:
            code, ending = Exit.INTERRUPTED, "stopped"
        except InvalidInput:
            raise
        except EquipoiseError as error:
            if not error.reason:  # refused before the first sample
                raise
            code, ending = Exit.FAILED, error.reason
            if "function" in loaded.about:  # a sentence does not say in which line it failed
                trace = getattr(error, "__notes__", [])
        signals.ignore()  # it ends anyway
        if live.last and (live.last.samples or as_json or not ending):
            _print_result(live.last.result, loaded, code, as_json, verbose)
        for lines in trace:
            print(exits.for_terminal(lines), file=sys.stderr)
        if ending:
            exits.say(f"{ending}; {_kept(live.last, loaded.store)}")
    raise typer.Exit(code)


def _kept(last: Progress | None, store: str | None) -> str:
    """Return what became of the samples, how many more a precision takes, and how to continue."""
    from equipoise.result.summary import what_is_left

    samples = last.samples if last else 0
    if not samples and not store:
        return "no samples were taken"
    taken, left = tables.count(samples, "sample"), what_is_left(last.result.known) if last else ""
    needed = f"; {left}" if left else ""
    if store:
        return f"{taken} saved in {store}{needed}; run the same command to continue"
    return f"{taken} taken, none saved{needed}; with --store study.db the same command would continue"


def _print_result(result: Result, loaded: Spec, code: int, as_json: bool, verbose: bool) -> None:
    from equipoise import Contrasts, report

    if as_json:
        known = report.plain(result)
        wanted = loaded.precision
        wanted = wanted.to_dict() if isinstance(wanted, Contrasts) else wanted
        known |= {"precision": wanted, "precision_reached": result.reached, "exit": int(code)}
        print_json(known)
        return
    screen = console()
    screen.print(result.verdict, markup=False)
    screen.print(report.table(result))
    for remark in result.remarks():
        screen.print(remark, markup=False)
    if verbose:
        screen.print(str(result.certificate), markup=False)
