"""
A study in a TOML file: its arms are shell commands, a table's columns or groups, or a Python function's.

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

from equipoise.arrays import Floats
from equipoise.errors import EquipoiseError
from equipoise.inputs import did_you_mean, integer, number, shown
from equipoise.lab import texts
from equipoise.run import tables
from equipoise.run.commands import MEASURES, Command, CommandError, Running
from equipoise.run.estimate import estimate
from equipoise.run.progress import Progress
from equipoise.store import Store
from equipoise.store.plain import loads
from equipoise.study import Result

EXAMPLE: Final = """\
# A study for `equipoise run`. Save it as study.toml, then: equipoise run study.toml

budget = 200            # at most so many samples in all
precision = "10%"       # stop when every mean is known to this share of its value; or a half-width such as 0.05
# level = 0.95          # ... all of them at once, with this probability
# max_seconds = 3600    # ask for nothing more after that time
# strategy = "auto"     # who is sampled next; "uniform" for every arm in turn
# seed = 1              # what $EQUIPOISE_SEED, the order of populations and resampling come from
store = "study.db"      # every sample is kept here, and the same command goes on from there

# Arms as shell commands, run by the shell in the folder of this file:
measure = "seconds"     # how long it takes; "stdout": the number it prints; "exit": 1 if it passes, else 0
timeout = 60            # seconds, then it is killed with all that it started
retries = 1             # how often to try a sample again that failed
warmup = 1              # runs of each command that are not counted, before the first one that is
# rounds = 2            # each command at least once in so many times as many runs as there are arms
# jobs = 1              # commands at the same time; more than one disturb one another's times

[arms]
zlib = 'python3 -c "import zlib; zlib.compress(bytes(range(256)) * 4000)"'
bz2 = 'python3 -c "import bz2; bz2.compress(bytes(range(256)) * 4000)"'
lzma = 'python3 -c "import lzma; lzma.compress(bytes(range(256)) * 4000)"'

# Arms as groups of the rows of a table, instead of measure and [arms]:
#     table = "visits.csv"        # .csv, .tsv or .parquet
#     group = "plan"              # an arm for each value of this column
#     value = "visits"            # the column whose means are wanted
# or as columns of it:
#     columns = ["height", "weight"]
# Rows are drawn without replacement; replacement = true draws from all of them each time.
# missing = "drop" leaves out rows without a number.

# Arms as arguments of a Python function, found in this folder or installed:
#     function = "mymodule:sample"
#     arms = ["a", "b"]
"""

_COMMON: Final[tuple[str, ...]] = (
    "budget", "precision", "level", "max_seconds", "strategy", "support", "seed", "retries", "jobs", "store",
    "objective", "weights", "costs", "guess",
)  # fmt: skip
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "commands": ("arms", "measure", "timeout", "warmup", "rounds"),
    "a table": ("table", "group", "value", "columns", "arms", "replacement", "missing"),
    "a function": ("function", "arms", "populations", "rounds"),
}
# Times drift as the machine does; every command is timed once at least in so many times as many runs as there are arms.
_ROUNDS: Final = 2


@dataclass(frozen=True)
class Spec:
    """
    A study that can be run.

    Attributes
    ----------
    samplers, settings
        What `estimate` is called with.
    about
        What is sampled, as it is kept in the store: a study goes on with the same only.
    running, warmup
        The commands that run, and how many runs of each are not counted.
    """

    samplers: Any
    settings: dict[str, Any]
    about: dict[str, Any]
    running: Running = field(default_factory=Running)
    warmup: int = 0

    @property
    def store(self) -> str | None:
        """Where the study is kept."""
        return self.settings["store"]  # type: ignore[no-any-return]

    @property
    def level(self) -> float:
        """With what probability all intervals hold at once."""
        return float(self.settings.get("level", 0.95))

    @property
    def precision(self) -> Any:
        """The half-width that is wanted, if one is."""
        return self.settings.get("precision")

    def run(self, progress: Callable[[Progress], Any]) -> Result:
        """Sample until the study is over. Commands that run are ended with it, however it ends."""
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
                    failure = EquipoiseError(f"the warm-up of arm {arm!r} failed: {error}")
                    failure.reason = str(failure)
                    raise failure from None

    def _same_as_before(self) -> None:
        """Refuse to mix samples of different things. The first event of a log is the start of its first run."""
        try:
            if self.store is None:
                return
            with Store(self.store) as store:
                first = next(store.events(), None)
        except ValueError:  # there is no study yet, or `estimate` says what is wrong
            return
        before = loads(first.text or "null").get("about") if first is not None and first.kind == "start" else None
        for key, was in (before or {}).items():
            now = self.about.get(key)
            if was != now:
                raise ValueError(
                    f"the study in {self.store} has {key} = {_shown_change(was, now)}, and the file has "
                    f"{_shown_change(now, was)}; it goes on with what it has, or begins anew in another store"
                )


def load(path: Path, **instead: Any) -> Spec:
    """
    Read a study from a TOML file.

    Parameters
    ----------
    path
        The file.
    **instead
        `budget`, `precision`, `jobs`, `store` to take instead of the file's, unless they are None.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8, and a TOML file is needed") from None
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no TOML: {error}") from None
    try:
        return _spec(
            given, path.absolute().parent, {name: value for name, value in instead.items() if value is not None}
        )
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from None


def _spec(given: dict[str, Any], folder: Path, instead: dict[str, Any]) -> Spec:
    kind = "a table" if "table" in given else "a function" if "function" in given else "commands"
    _refuse_unknown(given, kind)
    if "store" in given:
        given["store"] = _path_of_store(given["store"], folder)
    given |= instead
    known = {name: given[name] for name in _COMMON if name in given and name != "jobs"}
    settings: dict[str, Any] = {"store": None, **known}
    if "strategy" in settings:
        settings["strategy"] = texts.strategy(_text("strategy", settings["strategy"]))
    if isinstance(settings.get("support"), list):
        settings["support"] = tuple(settings["support"])
    jobs = integer("jobs", given["jobs"], least=1) if "jobs" in given else None
    if kind == "a table":
        return _of_table(given, folder, settings)
    settings["executor"] = jobs
    return _of_function(given, folder, settings) if kind == "a function" else _of_commands(given, folder, settings)


# ---- commands


def _of_commands(given: dict[str, Any], folder: Path, settings: dict[str, Any]) -> Spec:
    arms = given.get("arms")
    if not isinstance(arms, dict) or not arms:
        raise ValueError(
            'there are no arms; write a table [arms] with lines such as gzip = "gzip -c data.bin", or give a table '
            "or a function (equipoise run --example shows how)"
        )
    for arm, command in arms.items():
        if not isinstance(command, str) or not command.strip():
            own = "; what belongs to the study stands before [arms]" if arm in (*_COMMON, *_KINDS["commands"]) else ""
            raise ValueError(f"arm {arm!r} is {shown(command)}, and a command is needed{own}")
    measure = given.get("measure")
    if measure not in MEASURES:
        said = f"measure = {shown(measure)} will not do" if "measure" in given else "measure is missing"
        raise ValueError(f"{said}; it must be one of {', '.join(map(repr, MEASURES))}{did_you_mean(measure, MEASURES)}")
    if measure == "exit":
        if settings.get("support", "binary") != "binary":
            raise ValueError(
                f"support = {shown(given['support'])} will not do; a command that passes or fails is binary"
            )
        settings["support"] = "binary"
    if measure == "seconds" and "costs" not in given:
        settings["rounds"] = _ROUNDS
    settings |= {name: given[name] for name in ("rounds",) if name in given}
    timeout = number("timeout", given["timeout"]) if "timeout" in given else None
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout = {timeout:g} will not do; it must be a positive number of seconds")
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
    missing = given.get("missing", "refuse")
    if missing not in ("refuse", "drop"):
        raise ValueError(f"missing = {shown(missing)} will not do; it must be 'refuse' or 'drop'")
    if ("columns" in given) == ("group" in given) or ("group" in given) != ("value" in given):
        raise ValueError("a table needs either group and value, or columns")
    table = tables.read(path)
    about = {"table": given["table"], "contents": hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()}
    if "columns" in given:
        if "arms" in given:
            raise ValueError("arms is not needed beside columns, which are the arms")
        pools = tables.columns(table, _names("columns", given["columns"]), missing == "drop")
    else:
        arms = _names("arms", given["arms"]) if "arms" in given else None
        pools = tables.groups(table, given["group"], given["value"], arms, missing == "drop")
    about |= {name: given[name] for name in ("group", "value", "columns", "replacement", "missing") if name in given}
    replacement = given.get("replacement", False)
    if not isinstance(replacement, bool):
        raise TypeError(f"replacement = {shown(replacement)} will not do; it must be true or false")
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
            raise TypeError(f"populations = {shown(populations)} will not do; it is a table of sizes by arm")
        settings["populations"] = populations
    if "arms" in given:
        arms = given["arms"]
        settings["arms"] = arms if isinstance(arms, int) else _names("arms", arms)
    elif populations is None:
        raise ValueError(f'function = {text!r} needs to know its arms, as in arms = ["a", "b"]')
    return Spec(_function(text, folder), settings, {"function": text})


def _function(text: str, folder: Path) -> Callable[..., Any]:
    module, colon, name = text.partition(":")
    if not colon or not module or not name:
        raise ValueError(f"function = {text!r} will not do; it must be module:function")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(f"function = {text!r} cannot be imported: there is no module {error.name!r}") from None
    except Exception as error:  # whatever a module does when it is imported
        raise ValueError(f"function = {text!r} cannot be imported: {type(error).__name__}: {error}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            near = did_you_mean(part, vars(found))
            raise ValueError(f"function must be module:name, got {text!r}: {module} has no {part!r}{near}")
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"function = {text!r} will not do; it is {shown(found)}, and no function")
    return found  # type: ignore[no-any-return]


# ---- what was given


def _refuse_unknown(given: dict[str, Any], kind: str) -> None:
    known = (*_COMMON, *_KINDS[kind])
    for key in given:
        if key in known:
            continue
        owners = [other for other, keys in _KINDS.items() if key in keys]
        if owners:
            raise ValueError(f"{key} is for {' and '.join(owners)}, and the arms here are those of {kind}")
        there_are = f"; there are {', '.join(known)}"
        raise ValueError(f"there is no key {key!r}{did_you_mean(key, known) or there_are}")


def _path_of_store(given: Any, folder: Path) -> str:
    text = _text("store", given)
    return text if "://" in text else str(folder / text)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise TypeError(f"{name} = {shown(given)} will not do; it must be a text")
    return given


def _names(name: str, given: Any) -> list[Any]:
    if not isinstance(given, list) or not given or not all(isinstance(each, str | int) for each in given):
        raise TypeError(f"{name} = {shown(given)} will not do; it must be a list of names")
    return given


def _shown_change(one: Any, other: Any) -> str:
    """One of two things that differ; of two tables, what is different in them."""
    if isinstance(one, dict) and isinstance(other, dict):
        one = {key: value for key, value in one.items() if other.get(key) != value}
    return shown(one)
