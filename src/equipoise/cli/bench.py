"""The command `equipoise bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise import people
from equipoise.cli import exits
from equipoise.cli.exits import Exit
from equipoise.cli.options import Json, number_or_text
from equipoise.cli.output import check_writable, print_json, write_csv
from equipoise.errors import EquipoiseError

if TYPE_CHECKING:
    from equipoise.run.bench import Timings

# How long commands are run for a precision, unless --max-seconds says otherwise.
_MAX_SECONDS = 120.0


def bench(
    commands: Annotated[
        list[str], typer.Argument(help="The commands, each quoted as one argument.", metavar="COMMAND...")
    ],
    precision: Annotated[
        str, typer.Option(help="Run until the 95% interval of every mean has this half-width: 2%, or 0.01 for 10 ms.")
    ] = "5%",
    runs: Annotated[
        int | None, typer.Option("--runs", "-r", help="Run each command this many times, whatever the precision.")
    ] = None,
    max_runs: Annotated[int, typer.Option(help="The most runs, on average over commands.")] = 1000,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Start no more runs after this many seconds of measuring, once every command has been run.",
            show_default="120; no limit with --runs",
        ),
    ] = None,
    warmup: Annotated[int, typer.Option("--warmup", "-w", help="Runs of each command that do not count.")] = 0,
    setup: Annotated[str | None, typer.Option("--setup", "-s", help="Run this once, before everything else.")] = None,
    prepare: Annotated[
        list[str] | None,
        typer.Option("--prepare", "-p", help="Run this before each run, untimed; once, or once for each command."),
    ] = None,
    cleanup: Annotated[str | None, typer.Option("--cleanup", "-c", help="Run this once, at the end.")] = None,
    shell: Annotated[
        str,
        typer.Option("--shell", "-S", help="The shell, or none; auto uses /bin/sh if any command needs a shell."),
    ] = "auto",
    no_shell: Annotated[bool, typer.Option("-N", metavar="", help="Run without a shell: --shell none.")] = False,
    name: Annotated[
        list[str] | None, typer.Option("--name", "-n", help="A name for each command, in their order.")
    ] = None,
    ignore_failure: Annotated[
        bool, typer.Option("--ignore-failure", "-i", metavar="", help="Accept exit codes other than 0.")
    ] = False,
    show_output: Annotated[
        bool, typer.Option("--show-output", metavar="", help="Show what the commands print.")
    ] = False,
    as_json: Json = False,
    export_json: Annotated[Path | None, typer.Option(help="Also write all times to this JSON file.")] = None,
    export_csv: Annotated[Path | None, typer.Option(help="Also write the table to this CSV file.")] = None,
    export_markdown: Annotated[Path | None, typer.Option(help="Also write the table to this Markdown file.")] = None,
) -> None:
    """
    Time commands in turn, until the mean of each is known to a precision.

    Exit codes: 0 success; 1 precision not reached, or fewer runs than asked for;
    2 invalid input; 3 a command failed; 128 + n ended by signal n (130 for Ctrl-C).
    """
    from equipoise.cli.bench_progress import Watch
    from equipoise.run.bench import Bench, ProcessTimer
    from equipoise.run.bench.measure import names_of

    check_writable(export_json, export_csv, export_markdown)
    timer = ProcessTimer(show=show_output)
    watch = Watch(people.terminal() and not show_output)
    benchmark = Bench(
        names_of(commands, name or []),
        timer,
        precision=_precision(precision),
        runs=runs,
        max_runs=max_runs,
        max_seconds=_MAX_SECONDS if max_seconds is None and runs is None else max_seconds,
        warmup=warmup,
        setup=setup,
        prepare=prepare or (),
        cleanup=cleanup,
        shell="none" if no_shell else shell,
        ignore_failure=ignore_failure,
        watch=watch,
    )
    ending = ""
    with exits.Signals() as signals:
        try:
            with watch:
                benchmark.run()
            code: int = Exit.SUCCESS
        except exits.Ended as error:
            code, ending = error.code, str(error)
        except KeyboardInterrupt:
            code, ending = Exit.INTERRUPTED, "stopped"
        except EquipoiseError as error:
            code, ending = Exit.FAILED, str(error)
        signals.ignore()  # it ends anyway
        timer.running.stop()
        found = benchmark.so_far()
        if found is not None:
            if code == Exit.SUCCESS and not found.reached:
                code = Exit.NOT_REACHED
            _print(found, as_json, code)
            _export(found, export_json, export_csv, export_markdown)
        if ending:
            exits.say(ending)
    raise typer.Exit(code)


def _precision(typed: str) -> float | str:
    found = number_or_text(typed)
    assert found is not None
    return found


def _print(found: Timings, as_json: bool, code: int) -> None:
    from equipoise.run.bench import words

    if as_json:
        print_json(words.to_dict(found) | {"exit": int(code)})
    else:
        print(exits.for_terminal(words.text(found)))


def _export(found: Timings, as_json: Path | None, csv: Path | None, markdown: Path | None) -> None:
    from equipoise import tables
    from equipoise.run.bench import words

    if as_json is not None:
        as_json.write_text(tables.json_text(words.to_dict(found)) + "\n", encoding="utf-8")
    if csv is not None:
        write_csv(csv, words.records(found))
    if markdown is not None:
        markdown.write_text(words.markdown(found), encoding="utf-8")
