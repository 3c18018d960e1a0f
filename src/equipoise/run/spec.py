"""
A study in a TOML file, whose arms are shell commands, columns or groups of a table, or arguments of a Python function.

Paths are relative to the file, and commands run in its folder.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from equipoise.base import paths
from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput, SamplerFailed
from equipoise.base.inputs import (
    check_names,
    choice,
    did_you_mean,
    integer,
    listed,
    number_of_seconds,
    shown,
    without_password,
)
from equipoise.problem import Contrasts
from equipoise.result import Result
from equipoise.run import tables
from equipoise.run.commands import MEASURES, Command, CommandError, Running
from equipoise.run.estimate import estimate
from equipoise.run.progress import Progress
from equipoise.simulation import texts
from equipoise.store import Log

EXAMPLE: Final = """\
# A study for `equipoise run`. Save it as study.toml, then: equipoise run study.toml

budget = 200            # take at most this many samples in total
precision = "10%"       # stop when every 95% interval is within ±10% of its mean; or a half-width such as 0.05
# level = 0.95          # the probability that all intervals hold simultaneously
# interval = "anytime"  # intervals that hold whenever you look; by default, narrower ones that must decide alone
#     precision = {contrasts = 0.05, to = "zlib"}    # every difference to zlib; without `to`, those of all pairs
# max_seconds = 3600    # start no more samples after this time
# strategy = "auto"     # decides which arm to sample next; "uniform" takes every arm in turn
# seed = 1              # decides $EQUIPOISE_SEED, the order of populations and resampling
store = "study.db"      # every sample is saved here; run the same command to continue

# Arms as shell commands, run by the shell in the folder of this file:
measure = "seconds"     # how long the command takes; "stdout": the number it prints; "exit": 1 if it succeeds, else 0
timeout = 60            # seconds after which a command is killed, with every process it started
retries = 1             # how many times to retry a failed sample
warmup = 1              # runs of each command before the first one that counts
# rounds = 2            # run each command at least once in every 2 rounds, a round being one run per arm
# jobs = 1              # commands to run at the same time; commands that run in parallel distort each other's times

[arms]
zlib = 'python3 -c "import zlib; zlib.compress(bytes(range(256)) * 4000)"'
bz2 = 'python3 -c "import bz2; bz2.compress(bytes(range(256)) * 4000)"'
lzma = 'python3 -c "import lzma; lzma.compress(bytes(range(256)) * 4000)"'

# Arms as groups of the rows of a table, instead of measure and [arms]:
#     table = "visits.csv"        # .csv, .tsv or .parquet
#     group = "plan"              # one arm for each value of this column
#     value = "visits"            # the column whose means are estimated
# or as columns of the table:
#     columns = ["height", "weight"]
# Rows are drawn without replacement; replacement = true draws from all rows each time.
# missing = "drop" leaves out rows without a number.

# Arms as arguments of a Python function, in this folder or installed:
#     function = "mymodule:sample"
#     arms = ["a", "b"]
"""

_COMMON: Final[tuple[str, ...]] = (
    "budget", "precision", "level", "interval", "max_seconds", "strategy", "support", "seed", "retries", "jobs",
    "store", "objective", "weights", "costs", "guess",
)  # fmt: skip
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "shell commands": ("arms", "measure", "timeout", "warmup", "rounds"),
    "a table": ("table", "group", "value", "columns", "arms", "replacement", "missing"),
    "a function": ("function", "arms", "populations", "rounds"),
}
# The parser takes seconds for so many bytes, and minutes for many more.
_MOST_BYTES: Final = 1 << 23
# Each job is a thread, and a process where arms are commands.
_MOST_JOBS: Final = 1000
# Times drift as the machine does, so that every command is timed at least once in this many rounds.
_ROUNDS: Final = 2


@dataclass(frozen=True)
class Spec:
    """
    A study that is ready to run.

    Attributes
    ----------
    samplers, settings
        The arguments of `estimate`.
    about
        What is sampled, as saved in the store: a study only continues with the same.
    running, warmup
        The commands that are running, and how many runs of each do not count.
    """

    samplers: Any
    settings: dict[str, Any]
    about: dict[str, Any]
    running: Running = field(default_factory=Running)
    warmup: int = 0

    @property
    def store(self) -> str | None:
        """Where the study is saved."""
        return self.settings["store"]  # type: ignore[no-any-return]

    @property
    def level(self) -> float:
        """The probability that all intervals hold simultaneously."""
        return float(self.settings.get("level", 0.95))

    @property
    def precision(self) -> Any:
        """The half-width to reach, or None."""
        return self.settings.get("precision")

    def run(self, progress: Callable[[Progress], Any]) -> Result:
        """Sample until the study is over; commands that are still running then are killed, however it ends."""
        self._same_as_before()
        try:
            self._warm_up()
            return estimate(self.samplers, progress=progress, about=self.about, **self.settings)
        finally:
            self.running.stop()

    def _warm_up(self) -> None:
        for _ in range(self.warmup):
            for arm, command in self.samplers.items():
                try:
                    command()
                except CommandError as error:
                    reason = f"the warm-up run of arm {arm!r} failed: {error}"
                    raise SamplerFailed(reason, reason=reason) from None

    def _same_as_before(self) -> None:
        """Refuse to mix samples of different things; the header of a log says what was sampled."""
        if self.store is None:
            return
        try:
            with Log(self.store, write=False) as log:
                before = log.header.about
        except ValueError:  # there is no study yet, or `estimate` raises the same error
            return
        for key, was in (before or {}).items():
            now = self.about.get(key)
            if was != now:
                what, one, other = _change(key, was, now)
                raise InvalidInput(
                    f"{what} must stay {one} to continue the study in {without_password(self.store)}, got {other}; "
                    "change it back or use another store"
                )


def load(path: Path, **instead: Any) -> Spec:
    """
    Read a study from a TOML file.

    Parameters
    ----------
    path
        The file.
    **instead
        `budget`, `precision`, `interval`, `jobs` and `store` that override those in the file, unless they are None.
    """
    try:
        with paths.opened("a study", path, _MOST_BYTES) as file:
            text = file.read()
    except UnicodeDecodeError:
        raise InvalidInput(f"cannot parse {path} as TOML: it is not a text file in UTF-8") from None
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"cannot parse {path} as TOML: {_where_first(str(error))}") from None
    except RecursionError:
        raise InvalidInput(f"cannot parse {path} as TOML: it is nested too deeply") from None
    except ValueError:  # Python reads no integers of thousands of digits
        raise InvalidInput(f"cannot parse {path} as TOML: it has an integer of thousands of digits") from None
    try:
        return _spec(
            given, path.absolute().parent, {name: value for name, value in instead.items() if value is not None}
        )
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from None


def _where_first(message: str) -> str:
    """Return "line 1, column 8: expected ..." for the parser's "Expected ... (at line 1, column 8)"."""
    what, at, where = message.rpartition(" (at ")
    return f"{where.removesuffix(')')}: {what[:1].lower()}{what[1:]}" if at else message


def _spec(given: dict[str, Any], folder: Path, instead: dict[str, Any]) -> Spec:
    kind = "a table" if "table" in given else "a function" if "function" in given else "shell commands"
    _refuse_unknown(given, kind)
    if "store" in given:
        given["store"] = _path_of_store(given["store"], folder)
    given |= instead
    known = {name: given[name] for name in _COMMON if name in given and name != "jobs"}
    settings: dict[str, Any] = {"store": None, **known}
    if "strategy" in settings:
        settings["strategy"] = texts.strategy(_text("strategy", settings["strategy"]))
    if isinstance(settings.get("precision"), dict) and "contrasts" in settings["precision"]:
        settings["precision"] = _contrasts(settings["precision"])
    if isinstance(settings.get("support"), list):
        settings["support"] = tuple(settings["support"])
    jobs = integer("jobs", given["jobs"], least=1, most=_MOST_JOBS) if "jobs" in given else None
    if kind == "a table":
        return _of_table(given, folder, settings)
    settings["executor"] = jobs
    return _of_function(given, folder, settings) if kind == "a function" else _of_commands(given, folder, settings)


# ---- commands


def _of_commands(given: dict[str, Any], folder: Path, settings: dict[str, Any]) -> Spec:
    arms = given.get("arms")
    if isinstance(arms, list):
        raise InvalidInput(
            'a list of arms needs the function that samples them, as in function = "module:name", or a table; '
            "arms that are shell commands go into a section [arms]"
        )
    if not isinstance(arms, dict) or not arms:
        raise InvalidInput(
            'no arms were given; add a section [arms] with lines such as gzip = "gzip -c data.bin", or use a table '
            "or a function (equipoise run --example shows how)"
        )
    check_names(arms)  # before the warm-up runs any
    for arm, command in arms.items():
        _refuse_empty(arm)
        if not isinstance(command, str) or not command.strip():
            is_key = arm in (*_COMMON, *_KINDS["shell commands"])
            hint = f"; to set {arm} for the study, move it above [arms]" if is_key else ""
            raise InvalidInput(f"arm {arm!r} must be a command, got {shown(command)}{hint}")
    if "measure" not in given:
        raise InvalidInput(f"measure is required: one of {', '.join(map(repr, MEASURES))}")
    measure = choice("measure", given["measure"], MEASURES)
    if measure == "exit":
        if settings.get("support", "binary") != "binary":
            raise InvalidInput(f"support must be 'binary' where exit codes are measured, got {shown(given['support'])}")
        settings["support"] = "binary"
    if measure == "seconds" and "costs" not in given:
        settings["rounds"] = _ROUNDS
    settings |= {name: given[name] for name in ("rounds",) if name in given}
    timeout = number_of_seconds("timeout", given["timeout"]) if "timeout" in given else None
    running = Running()
    return Spec(
        {arm: Command(arm, command, measure, folder, timeout, running) for arm, command in arms.items()},
        settings,
        {"measure": measure, "arms": arms},
        running,
        integer("warmup", given.get("warmup", 0), least=0),
    )


# ---- tables


def _of_table(given: dict[str, Any], folder: Path, settings: dict[str, Any]) -> Spec:
    path = folder / _text("table", given["table"])
    missing = choice("missing", given.get("missing", "refuse"), ("refuse", "drop"))
    if ("columns" in given) == ("group" in given) or ("group" in given) != ("value" in given):
        raise InvalidInput("a table needs either columns, or group and value")
    table = tables.read(path)
    about = {"table": given["table"], "contents": hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()}
    if "columns" in given:
        if "arms" in given:
            raise InvalidInput("arms cannot be given with columns: the columns are the arms")
        pools = tables.columns(table, _names("columns", given["columns"]), missing == "drop")
    else:
        arms = _names("arms", given["arms"]) if "arms" in given else None
        pools = tables.groups(table, given["group"], given["value"], arms, missing == "drop")
    about |= {name: given[name] for name in ("group", "value", "columns", "replacement", "missing") if name in given}
    replacement = given.get("replacement", False)
    if not isinstance(replacement, bool):
        raise TypeError(f"replacement must be true or false, got {shown(replacement)}")
    if replacement:
        return Spec(functools.partial(_resampled, pools), settings | {"arms": list(pools)}, about)
    return Spec(_drawn, settings | {"populations": pools}, about)


def _drawn(item: Floats, size: int) -> Floats:
    return item


def _resampled(pools: Mapping[Any, Floats], arm: Any, size: int, seed: npt.NDArray[np.uint64]) -> Floats:
    pool = pools[arm]
    return np.asarray(pool[seed % np.uint64(len(pool))])


# ---- functions


def _of_function(given: dict[str, Any], folder: Path, settings: dict[str, Any]) -> Spec:
    text = _text("function", given["function"])
    populations = given.get("populations")
    settings |= {name: given[name] for name in ("rounds",) if name in given}
    if populations is not None:
        if not isinstance(populations, dict):
            raise TypeError(f"populations must be a section with the size of each arm, got {shown(populations)}")
        settings["populations"] = populations
    if "arms" in given:
        arms = given["arms"]
        settings["arms"] = arms if isinstance(arms, int) else _names("arms", arms)
    elif populations is None:
        raise InvalidInput(f'function = {text!r} needs a list of its arms, as in arms = ["a", "b"]')
    return Spec(_function(text, folder), settings, {"function": text})


def _function(text: str, folder: Path) -> Callable[..., Any]:
    found = imported("function", text, folder)
    if not callable(found):
        raise TypeError(f"function must be module:name of something callable, got {text!r}, which is {shown(found)}")
    return found  # type: ignore[no-any-return]


def imported(what: str, text: str, folder: Path) -> Any:
    """
    Return what has a name in a module, by a text such as "module:name".

    Parameters
    ----------
    what
        What it is, for messages.
    text
        The text.
    folder
        Where to look for the module first.
    """
    module, colon, name = text.partition(":")
    if not colon or not module or not name:
        raise InvalidInput(f"{what} must be module:name, got {text!r}")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"cannot import {what} {text!r}: there is no module {error.name!r}") from None
    except Exception as error:  # whatever a module does when it is imported
        raise InvalidInput(f"cannot import {what} {text!r}: {type(error).__name__}: {error}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            near = did_you_mean(part, vars(found))
            raise InvalidInput(f"{what} {text!r} does not exist: {module} has no {part!r}{near}")
        found = getattr(found, part)
    return found


# ---- keys and values


def _refuse_unknown(given: dict[str, Any], kind: str) -> None:
    known = (*_COMMON, *_KINDS[kind])
    for key in given:
        if key in known:
            continue
        owners = [other for other, keys in _KINDS.items() if key in keys]
        if owners:
            raise InvalidInput(f"{key} applies to studies of {' and '.join(owners)}; this is a study of {kind}")
        all_keys = f"; the keys are {', '.join(known)}"
        raise InvalidInput(f"there is no key {key!r}{did_you_mean(key, known) or all_keys}")


def _contrasts(given: dict[str, Any]) -> Contrasts:
    """Return the contrasts of a section such as {contrasts = 0.02, to = "control"}."""
    for key in given:
        if key not in ("contrasts", "to", "of"):
            raise InvalidInput(f"precision with contrasts takes to and of, got {key!r}")
    return Contrasts(given["contrasts"], to=given.get("to"), of=given.get("of"))


def _path_of_store(given: Any, folder: Path) -> str:
    text = _text("store", given)
    return text if "://" in text else str(folder / text)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise TypeError(f"{name} must be a string, got {shown(given)}")
    return given


def _names(name: str, given: Any) -> list[Any]:
    if not isinstance(given, list) or not given or not all(isinstance(each, str | int) for each in given):
        raise TypeError(f"{name} must be a list of names, got {shown(given)}")
    for each in given:
        _refuse_empty(each)
    return given


def _refuse_empty(name: Any) -> None:
    """Refuse a name that was typed and has nothing in it."""
    if isinstance(name, str) and not name.strip():
        raise InvalidInput(f"the name of an arm must not be empty, got {shown(name)}")


def _change(key: str, was: Any, now: Any) -> tuple[str, str, str]:
    """Return what differs, as it was and as it is: of dicts their names, or the first entry where those are equal."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        return key, shown(was), shown(now)
    if was.keys() != now.keys():
        # Those that differ first, as a long list is cut.
        return key, listed(sorted(was, key=now.__contains__)), listed(sorted(now, key=was.__contains__))
    arm = next(arm for arm in was if was[arm] != now[arm])
    return f"the command of arm {arm!r}", shown(was[arm]), shown(now[arm])
