"""The command `equipoise bench`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from equipoise.base import terminal as people
from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import choice, positive
from equipoise.cli import exits
from equipoise.cli.exits import Exit
from equipoise.cli.options import Json, number
from equipoise.cli.output import check_writable, csv_text, print_json, writing

if TYPE_CHECKING:
    from equipoise.timing import Timings

# How long commands are run for a precision, unless --max-seconds says otherwise.
_MAX_SECONDS = 120.0
# Units of a precision, and how many seconds each is.
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
# Where an export goes that is named so.
_STDOUT: Final = Path("-")
_LISTS: Final = ("-L", "--parameter-list")
_SCANS: Final = ("-P", "--parameter-scan")
# Options of hyperfine that have no counterpart here, and what to do instead.
_HYPERFINE: Final = {
    "--style": "the bar is shown in a terminal alone",
    "--sort": "the table has the order of the commands",
    "--reference": "every command is compared with the fastest one",
    "--reference-name": "every command is compared with the fastest one",
    "--input": "commands read from /dev/null; redirect their input in a shell, as in 'sort < data.txt'",
    "--conclude": "--cleanup runs a command at the end",
    "--export-asciidoc": "use --export-markdown, --export-csv or --export-json",
    "--export-orgmode": "use --export-markdown, --export-csv or --export-json",
    "--debug-mode": "times are always those of real commands",
}


def joined(args: list[str], options: Collection[str]) -> list[str]:
    """
    Return arguments with the two values of each -L in one, as VAR=a,b,c.

    Options with two values that may be given several times are hyperfine's, and typer has none.

    Parameters
    ----------
    args
        The arguments.
    options
        All options, none of which is a value.
    """
    found: list[str] = []
    following = iter(args)
    for arg in following:
        if arg == "--":
            return [*found, arg, *following]
        if (name := arg.partition("=")[0]) in _HYPERFINE:
            raise ValueError(f"{name} is an option of hyperfine that equipoise bench does not have: {_HYPERFINE[name]}")
        if arg in _SCANS and any(scan in found for scan in _SCANS):
            raise ValueError("parameter-scan must be given once, got it twice; use --parameter-list")
        found.append(arg)
        if arg in _LISTS:
            pair = [text for text in (next(following, None), next(following, None)) if text is not None]
            for i, text in enumerate(pair):
                if (option := text.partition("=")[0]) in options:
                    raise ValueError(
                        "parameter-list must be given a name and values, as in -L VAR a,b,c, got the option "
                        f"{option} after {' '.join([arg, *pair[:i]])}"
                    )
            found.append("=".join(pair))
    return found


def bench(
    commands: Annotated[
        list[str], typer.Argument(help="The commands, each quoted as one argument.", metavar="COMMAND")
    ],
    precision: Annotated[str, typer.Option(help="Run until every mean is known to ± this (95%): 2%, or 10ms.")] = "5%",
    runs: Annotated[
        int | None, typer.Option("--runs", "-r", help="Run each command this many times, whatever the precision.")
    ] = None,
    min_runs: Annotated[
        int | None, typer.Option("--min-runs", "-m", help="The fewest runs of each command; 1 by default.")
    ] = None,
    max_runs: Annotated[
        int | None, typer.Option("--max-runs", "-M", help="The most runs, on average over commands; 1,000 by default.")
    ] = None,
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
    parameter_scan: Annotated[
        tuple[str, str, str] | None,
        typer.Option(*_SCANS[::-1], metavar="VAR MIN MAX", help="Run commands with {VAR} from MIN to MAX."),
    ] = None,
    parameter_step_size: Annotated[
        str | None, typer.Option("--parameter-step-size", "-D", metavar="STEP", help="The step from MIN to MAX.")
    ] = None,
    parameter_list: Annotated[
        list[str] | None,
        typer.Option(*_LISTS[::-1], metavar="VAR a,b,c", help="Run commands with {VAR} as each of these; repeatable."),
    ] = None,
    shell: Annotated[
        str,
        typer.Option("--shell", "-S", help="The shell, or none; auto uses /bin/sh if any command needs a shell."),
    ] = "auto",
    no_shell: Annotated[bool, typer.Option("-N", metavar="", help="Run without a shell: --shell none.")] = False,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", "--command-name", "-n", help="A name for each command, in their order."),
    ] = None,
    ignore_failure: Annotated[
        bool, typer.Option("--ignore-failure", "-i", metavar="", help="Accept exit codes other than 0.")
    ] = False,
    output: Annotated[
        str, typer.Option(help="Where what commands print goes: null, pipe (read and dropped), inherit, or a file.")
    ] = "null",
    show_output: Annotated[
        bool, typer.Option("--show-output", metavar="", help="Show what the commands print: --output inherit.")
    ] = False,
    time_unit: Annotated[
        str | None,
        typer.Option("--time-unit", "-u", help="The unit of the table: microsecond, millisecond or second."),
    ] = None,
    as_json: Json = False,
    export_json: Annotated[
        Path | None, typer.Option(help="Also write all times to this JSON file, or to stdout for -.")
    ] = None,
    export_csv: Annotated[
        Path | None, typer.Option(help="Also write the table to this CSV file, or to stdout for -.")
    ] = None,
    export_markdown: Annotated[
        Path | None, typer.Option(help="Also write the table to this Markdown file, or to stdout for -.")
    ] = None,
) -> None:
    """
    Time commands in turn, until the mean of each is known to a precision.

    Exit codes: 0 success; 1 precision not reached, or fewer runs than asked for;
    2 invalid input; 3 a command failed; 128 + n ended by signal n (130 for Ctrl-C).
    """
    from equipoise.cli.bench_progress import BenchBar
    from equipoise.timing import Bench, BenchOptions, ProcessTimer, parameters, words
    from equipoise.timing.options import names_of
    from equipoise.timing.timer import OUTPUTS

    if time_unit is not None:
        choice("time-unit", time_unit, words.UNITS)
    if runs is not None and (min_runs is not None or max_runs is not None):
        raise ValueError(f"--runs must be given without --min-runs and --max-runs, got --runs {runs} with one of them")
    exports = Exports(export_json, export_csv, export_markdown)
    exports.check()
    if as_json + exports.to_stdout > 1:
        raise ValueError("stdout must be for --json or for one export, got several; give the others a file")
    where = "inherit" if show_output else output
    if where not in OUTPUTS:
        check_writable(Path(where))
    filled = parameters.fill(
        _values(parameter_scan, parameter_step_size, parameter_list or []),
        commands,
        name or [],
        prepare or [],
        [] if setup is None else [setup],
        [] if cleanup is None else [cleanup],
    )
    # What is printed for programs is not mixed with what commands and this program tell people.
    aside = as_json or exports.to_stdout > 0
    timer = ProcessTimer(where, aside=aside)
    watch = BenchBar(people.terminal() and where != "inherit")
    named = names_of(filled.commands, filled.names)
    options = BenchOptions(
        named,
        precision=_precision(precision),
        runs=runs,
        min_runs=1 if min_runs is None else min_runs,
        max_runs=1000 if max_runs is None else max_runs,
        max_seconds=_MAX_SECONDS if max_seconds is None and runs is None else max_seconds,
        warmup=warmup,
        setup=filled.setup,
        prepare=filled.prepare,
        cleanup=filled.cleanup,
        shell="none" if no_shell else shell,
        ignore_failure=ignore_failure,
        parameters=dict(zip(named, filled.chosen, strict=True)),
    )
    benchmark = Bench(options, timer, watch=watch)
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
        except InvalidInput:
            raise
        except EquipoiseError as error:
            code, ending = Exit.FAILED, str(error)
        signals.ignore()  # it ends anyway
        timer.running.stop()
        found = benchmark.so_far()
        unwritten: list[str] = []
        if found is not None:
            if code == Exit.SUCCESS and not found.reached:
                code = Exit.NOT_REACHED
            # Before anything is printed, which may fail.
            unwritten = exports.write(found, time_unit)
            if unwritten and code in (Exit.SUCCESS, Exit.NOT_REACHED):
                code = Exit.BAD_INPUT
            if as_json:
                print_json(words.to_dict(found) | {"exit": int(code), "error": ending or None})
            else:
                print(
                    exits.for_terminal(words.text(found, time_unit)),
                    file=sys.stderr if exports.to_stdout else sys.stdout,
                )
        elif as_json:
            print_json({"version": words.VERSION, "reached": False, "results": [], "exit": int(code), "error": ending})
        for sentence in dict.fromkeys([*unwritten, *filter(None, [ending]), *benchmark.unclean]):
            exits.say(sentence)
    raise typer.Exit(code)


def _values(scan: tuple[str, str, str] | None, step: str | None, lists: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of parameters, by their names."""
    from equipoise.timing import parameters

    if step is not None and scan is None:
        raise ValueError(f"parameter-step-size is for --parameter-scan, which is not given, got {step!r}")
    found: dict[str, list[str]] = {}
    given = [] if scan is None else [(scan[0], parameters.scan(scan[1], scan[2], step))]
    for text in lists:
        name, equals, values = text.partition("=")
        if not name or not equals:
            raise ValueError(f"parameter-list must be given a name and values, as in -L VAR a,b,c, got {text!r}")
        given.append((name, parameters.listed(values)))
    for name, each in given:
        if name in found:
            raise ValueError(f"every parameter must be given once, got {name!r} twice")
        found[name] = each
    return found


def _precision(typed: str) -> float | str:
    """Return a share as it is, and a time in seconds."""
    text = typed.strip()
    matched = re.fullmatch(r"([-+.\deE]+?)\s*([a-zµμ]+)", text)
    if matched is not None and (unit := matched[2].replace("μ", "µ")) in _SECONDS:
        return positive("precision", number("precision", matched[1]) * _SECONDS[unit])
    if not text.endswith("%"):
        raise ValueError(f"precision must be a share of the mean such as 2%, or a time such as 10ms, got {typed!r}")
    if not number("precision", text[:-1]) > 0:
        raise ValueError(
            f"precision must be a positive number with % or a unit of time, such as 2% or 10ms, got {typed!r}"
        )
    return text


@dataclass(frozen=True)
class Exports:
    """The files that a benchmark is written to, or "-" for stdout; None for none."""

    as_json: Path | None
    csv: Path | None
    markdown: Path | None

    @property
    def to_stdout(self) -> int:
        """How many of them are written to stdout."""
        return (self.as_json, self.csv, self.markdown).count(_STDOUT)

    def check(self) -> None:
        """Refuse what cannot be written."""
        check_writable(*(path for path in (self.as_json, self.csv, self.markdown) if path != _STDOUT))

    def write(self, found: Timings, unit: str | None) -> list[str]:
        """Write all files, and return what went wrong."""
        from equipoise.base import tables
        from equipoise.timing import words

        texts: list[tuple[Path | None, Callable[[], str]]] = [
            (self.as_json, lambda: tables.json_text(words.to_dict(found)) + "\n"),
            (self.csv, lambda: csv_text(words.records(found))),
            (self.markdown, lambda: words.markdown(found, unit)),
        ]
        wrong = []
        for path, text in texts:
            try:
                if path == _STDOUT:
                    print(text(), end="")
                elif path is not None:
                    content = text().encode()  # an error leaves what the file has
                    with writing(path):
                        path.write_bytes(content)
            except ValueError as error:
                wrong.append(str(error))
        return wrong
