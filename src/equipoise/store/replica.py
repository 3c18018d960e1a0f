"""
A replica of a study: what the log says, folded.

The arms of tickets are read from the log rather than decided again, so that safety never rests on equal floating-point
numbers, and a log that was written by another version of a strategy still says what happened. Everything is checked
before compiled code sees it: whatever a row may hold, the answer is a study or one sentence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats, Ints
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import choice, integer, printable
from equipoise.ledger import steps
from equipoise.ledger.goal import Stopping
from equipoise.ledger.ledger import InvalidVariance, Ledger
from equipoise.ledger.ticket import BITS
from equipoise.result import Result
from equipoise.store import events as log
from equipoise.store.database import Row, link
from equipoise.store.events import Damaged, Events
from equipoise.store.header import Header, check_goal, unreadable
from equipoise.store.plain import UNREADABLE, dumps, loads
from equipoise.study import Study
from equipoise.study.pace import by_arm
from equipoise.study.policy import EXHAUSTED, JUDGEMENTS, PRECISE, Policy

# What compiled code folds, by kind; -1 for the rest.
_ACTIONS = np.full(len(log.KINDS), -1, np.int64)
_ACTIONS[[log.ASK, log.TELL, log.DECLINE]] = steps.ASK, steps.TELL, steps.DECLINE

# Why a ticket was given back that was never sampled.
RETIRED: Final = "arm retired"
WITHDRAWALS: Final = (EXHAUSTED, RETIRED)


class Grown:
    """An array that grows at its end."""

    def __init__(self, dtype: Any) -> None:
        self._room = np.zeros(64, dtype)
        self.size = 0

    def extend(self, more: Any) -> None:
        """Append several numbers."""
        size = self.size + len(more)
        if size > len(self._room):
            room = np.zeros(max(size, 2 * len(self._room)), self._room.dtype)
            room[: self.size] = self.array
            self._room = room
        self._room[self.size : size] = more
        self.size = size

    @property
    def array(self) -> Any:
        """What it holds."""
        return self._room[: self.size]


class Replica:
    """
    A study as its log has it up to some turn.

    Attributes
    ----------
    header
        What the study is made of.
    study, policy
        The study, and its policy.
    turns, chain
        How many turns are folded, and the chain of the last one.
    precision, level, interval
        What is asked for now.
    followed, weighed
        Whether the weights follow the precision rather than what somebody set; and how many samples there were when
        they were set for the precision that is asked for now, -1 if they were not.
    judged
        For each arm, whether it is retired because it is known well enough or has no more samples, not by the user.
    settled
        For each arm, whether it is retired because the precision that is asked for now was reached.
    counts
        How many events of each kind there were.
    began, latest
        When the first and the last turn were written, in seconds since 1970; NaN before the first.
    """

    def __init__(self, header: Header, turns: int, chain: bytes) -> None:
        self.header, self.turns, self.chain = header, turns, chain
        self.study, self.policy = header.study(), Policy(header)
        self.precision, self.level, self.interval = header.precision, header.level, header.interval
        self.followed, self.weighed = False, -1
        self.judged, self.settled = np.zeros((2, len(self.study.arms)), bool)
        self.counts: Counter[str] = Counter()
        self.began = self.latest = math.nan
        # As far as somebody told them: of a poll, none.
        self._seconds = Grown(np.float32)
        # The turns that handed out tickets: the id of the first of them, and the upper bits of their numbers.
        # There may be as many as tickets, so that they are kept small.
        self._firsts, self._tags = Grown(np.uint32), Grown(np.int32)

    @staticmethod
    def begin(row: Row) -> Replica:
        """Return the replica of a log of which only the header is known."""
        if row.turn != 0 or link(b"", 0, row.id, row.at, row.body) != row.chain:
            raise Damaged("the header does not match its checksum")
        try:
            text = row.body.decode()
        except UnicodeDecodeError:
            raise Damaged("the header is not text") from None
        header = Header.from_json(text)
        try:
            return Replica(header, 0, row.chain)
        except (*UNREADABLE, MemoryError) as error:
            raise unreadable(error) from None

    # ---- folding

    def fold(self, rows: Sequence[Row], parts: Callable[[Events], Iterable[Events]] | None = None) -> None:
        """
        Apply the turns that follow; Damaged where they cannot be those that were written.

        Parameters
        ----------
        rows
            The turns.
        parts
            Divides their events into parts; when it is asked for the next one, those before have been applied.
        """
        if not rows:
            return
        for number, row in enumerate(rows, self.turns + 1):
            if row.turn != number:
                raise Damaged(f"turn {number:,} is missing")
            self.chain = link(self.chain, row.turn, row.id, row.at, row.body)
            if self.chain != row.chain:
                raise Damaged(f"turn {number:,} does not match its checksum")
        try:
            found = log.unpack(row.body for row in rows)
        except Damaged:
            for row in rows:
                _check_body(row)
            raise
        self._number(rows)
        for part in (found,) if parts is None else parts(found):
            self.apply(part)
        self.written(rows[0].at, rows[-1].at, len(rows))

    def written(self, first: float, last: float, turns: int, chain: bytes | None = None) -> None:
        """Note that turns were folded, or that one was written by this very process."""
        self.turns += turns
        self.began = first if math.isnan(self.began) else self.began
        self.latest = last
        self.chain = chain or self.chain

    def _number(self, rows: Sequence[Row]) -> None:
        """Note which tickets each turn hands out."""
        issued, firsts, tags = self.study.ledger.issued, [], []
        for row in rows:
            asked = log.asks_in(row.body)
            if asked:
                firsts.append(issued)
                tags.append(tag_of(row.id))
                issued += asked
        self.numbered(firsts, tags)

    def numbered(self, firsts: Iterable[int], tags: Iterable[int]) -> None:
        """Note the first tickets and the tags of turns that handed out some."""
        self._firsts.extend(np.fromiter(firsts, np.uint32))
        self._tags.extend(np.fromiter(tags, np.int32))

    def apply(self, found: Events) -> None:
        """Apply events to the study; Damaged at the first that cannot be."""
        kinds, places, values, costs, texts = found.kinds, found.places, found.values, None, found.texts
        if (kinds == log.COST).any():
            # What a sample cost belongs to the answer or the decline that follows.
            _check_costs(kinds, places)
            costs = np.r_[math.nan, np.where(kinds == log.COST, values, math.nan)[:-1]]
            keep = np.flatnonzero(kinds != log.COST)
            kinds, places, values, costs = kinds[keep], places[keep], values[keep], costs[keep]
            texts = {j: texts[at] for j, at in enumerate(keep.tolist()) if at in texts}
        actions = _ACTIONS[kinds]
        # Runs of asks, answers and declines go to compiled code, and whatever is between them one by one.
        done = 0
        for other in [*np.flatnonzero(actions < 0).tolist(), len(kinds)]:
            if other > done:
                part = slice(done, other)
                self._fold_tickets(actions[part], places[part], values[part], None if costs is None else costs[part])
            if other < len(kinds):
                self._apply_one(int(kinds[other]), int(places[other]), texts.get(other))
            done = other + 1
        told = found.kinds == log.TELL
        self.note_many(found.places[told], found.seconds[told])
        self.count(found.kinds.tobytes())

    def _fold_tickets(self, actions: Ints, places: Ints, values: Floats, costs: Floats | None) -> None:
        ledger = self.study.ledger
        try:
            wrong = ledger.fold(actions, places, values, costs)
        except ValueError as error:
            raise Damaged(str(error)) from None
        if wrong >= 0:
            place, value = int(places[wrong]), float(values[wrong])
            self._check_place(place, ledger.issued if actions[wrong] != steps.ASK else None)
            if actions[wrong] == steps.TELL and not ledger.possible(value):
                raise Damaged(f"a sample cannot be {value!r}")
            raise Damaged(f"ticket {place} is answered or declined twice")

    def _check_place(self, place: int, issued: int | None) -> None:
        """Refuse the place of an arm that there is not, or, of a ticket, an id of those that were not issued yet."""
        if issued is None and place >= len(self.study.arms):
            raise Damaged(f"there is no arm {place}")
        if issued is not None and place >= issued:
            raise Damaged(f"ticket {place} was not handed out")

    def count(self, kinds: bytes | bytearray) -> None:
        """Count events by their kinds."""
        for kind, name in enumerate(log.KINDS):
            many = kinds.count(kind)
            if many:
                self.counts[name] += many

    def _apply_one(self, kind: int, place: int, text: str | None) -> None:
        study, ledger = self.study, self.study.ledger
        if kind in log.OF_ARM or kind in log.OF_TICKET:
            self._check_place(place, ledger.issued if kind in log.OF_TICKET else None)
        try:
            # A strategy that gave an invalid variance did so when the log was written, and the event was kept.
            with suppress(InvalidVariance):
                if kind == log.FORGET:
                    ledger.forget(place, withdrawn=text in WITHDRAWALS)
                elif kind == log.RETIRE:
                    ledger.retire(place)
                    self.retired(place, text)
                elif kind == log.REOPEN:
                    ledger.reopen(place)
                    self.settled[place] = False
                elif kind == log.BUDGET:
                    study.set_budget(loads(text or ""))
                elif kind == log.WEIGHTS:
                    change = loads(text or "")
                    study.set_weights(change["weights"])
                    self.weights_set(change["followed"])
                elif kind == log.GOAL:
                    wanted = loads(text or "")
                    arms, options = study.arms, self.header.options
                    check_goal(wanted["precision"], wanted["level"], arms, wanted["interval"], options)
                    self.set_goal(wanted["precision"], wanted["level"], wanted["interval"])
                elif kind == log.MOMENTS:
                    study.tell_moments(study.arms[place], *loads(text or ""))
        except UNREADABLE as error:
            said = " ".join(str(error).split())[:300]
            raise Damaged(f"an event {log.KINDS[kind]!r} cannot be: {printable(said)}") from None

    def set_goal(self, precision: Any, level: float, interval: Stopping) -> None:
        """Change what is asked for. No arm has reached it yet, and weights that follow it are set when they are due."""
        if (dumps(precision), level, interval) != (dumps(self.precision), self.level, self.interval):
            self.settled[:] = False
        self.precision, self.level, self.interval, self.weighed = precision, level, interval, -1

    def retired(self, place: int, why: str | None) -> None:
        """Note why an arm was retired."""
        self.judged[place], self.settled[place] = why in JUDGEMENTS, why == PRECISE

    def weights_set(self, followed: bool) -> None:
        """Note that weights were set, and whether they follow the precision."""
        self.followed, self.weighed = followed, self.study.ledger.samples if followed else -1

    # ---- as plain arrays

    def arrays(self) -> dict[str, Any]:
        """Return what a snapshot holds besides the study."""
        return {
            "seconds": self.seconds if self.timed else self._seconds.array,
            "judged": self.judged,
            "settled": self.settled,
            "firsts": self._firsts.array,
            "tags": self._tags.array,
            "precision": self.precision,
            "level": self.level,
            "interval": self.interval,
            "followed": self.followed,
            "weighed": self.weighed,
            "counts": dict(self.counts),
            "began": self.began,
            "latest": self.latest,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take what `arrays` gave; ValueError or TypeError where it cannot be that."""
        issued, firsts = self.study.ledger.issued, saved["firsts"].astype(np.int64)
        masks = saved["judged"].dtype == saved["settled"].dtype == bool
        if len(saved["seconds"]) > issued or len(firsts) != len(saved["tags"]) or not masks:
            raise InvalidInput("its arrays do not fit")
        # From the first ticket on, each turn's after those of the turn before.
        if (np.diff(firsts, prepend=-1, append=max(issued, 0)) <= 0).any() or (issued and firsts[:1].tolist() != [0]):
            raise InvalidInput("its tickets are not in order")
        check_goal(saved["precision"], saved["level"], self.study.arms, saved["interval"], self.header.options)
        integer("weighed", saved["weighed"], least=-1)
        for kind, many in saved["counts"].items():
            choice("kind", kind, log.KINDS)
            integer(kind, many, least=0)
        if type(saved["followed"]) is not bool or not type(saved["began"]) is type(saved["latest"]) is float:
            raise TypeError("its numbers cannot be read")
        self._seconds.extend(saved["seconds"])
        self.judged[:], self.settled[:] = saved["judged"], saved["settled"]
        self.numbered(saved["firsts"], saved["tags"])
        self.precision, self.level, self.interval = saved["precision"], saved["level"], saved["interval"]
        self.followed, self.weighed = saved["followed"], saved["weighed"]
        self.counts = Counter(saved["counts"])
        self.began, self.latest = saved["began"], saved["latest"]

    # ---- what else is known

    @property
    def ledger(self) -> Ledger:
        """The state of the study, by ids and places."""
        return self.study.ledger

    def result(self, each: float | None = None) -> Result:
        """
        Return what is known now.

        Parameters
        ----------
        each
            Recent seconds from one sample to the next, if they are known.
        """
        about, seconds, pace = self.header.about or {}, self.seconds if self.timed else np.empty(0), None
        if each is not None:
            pace = by_arm(each, self.ledger.arms_of(slice(len(seconds))), seconds, len(self.header.arms))
        # Where durations are what is measured, slow samples differ from fast ones by their nature.
        compared = None if about.get("measure") == "seconds" or not len(seconds) else seconds
        unit = str(about.get("cost_unit", ""))
        return self.study.result(
            goal=self.policy.goal(self), seconds=compared, pace=pace, cost_unit=unit, settled=self.settled.copy()
        )

    @property
    def timed(self) -> bool:
        """Whether somebody told how long a sample took."""
        return self._seconds.size > 0

    @property
    def seconds(self) -> Floats:
        """How long each ticket's sample took, by its id; NaN where that is not known."""
        issued = self.study.ledger.issued
        self._seconds.extend(np.full(max(issued - self._seconds.size, 0), math.nan))
        return self._seconds.array[:issued]  # type: ignore[no-any-return]

    def note(self, ticket: int, seconds: float) -> None:
        """Note how long one ticket's sample took."""
        if math.isnan(seconds):
            return
        if ticket >= self._seconds.size:
            self._seconds.extend(np.full(ticket + 64 - self._seconds.size, math.nan))
        self._seconds.array[ticket] = seconds

    def note_many(self, tickets: Ints, seconds: Floats) -> None:
        """Note how long the samples of several tickets took."""
        known = ~np.isnan(seconds)
        if known.any():
            self.seconds[tickets[known]] = seconds[known]

    def numbers(self, ids: Ints) -> Ints:
        """Return the numbers of tickets, in which the turn that handed them out is found again."""
        # Of the array's own type, or all of it would be converted.
        turn = np.searchsorted(self._firsts.array, ids.astype(np.uint32), side="right") - 1
        return np.asarray((self._tags.array[turn].astype(np.int64) << BITS) | ids)

    def id_of(self, number: int) -> int | None:
        """Return the id of a ticket by its number; None where this log did not hand it out."""
        ticket = number & ((1 << BITS) - 1)
        if number < 0 or ticket >= self.study.ledger.issued or not self._firsts.size:
            return None
        return ticket if int(self.numbers(np.array([ticket]))[0]) == number else None


def _check_costs(kinds: Any, places: Ints) -> None:
    """Refuse a cost that the answer or the decline of its ticket does not follow."""
    paid = np.flatnonzero(kinds == log.COST)
    settled = paid[paid + 1 < len(kinds)] + 1
    follows = log.are(kinds[settled], log.SETTLING) & (places[settled] == places[settled - 1])
    if len(settled) < len(paid) or not follows.all():
        raise Damaged("a cost has no answer or decline after it")


def _check_body(row: Row) -> None:
    """Say which turn it is that cannot be unpacked."""
    try:
        log.unpack([row.body])
    except Damaged as error:
        raise Damaged(f"turn {row.turn:,}: {error}") from None


def tag_of(identity: bytes) -> int:
    """Return the upper bits of the numbers of the tickets that a turn hands out."""
    return int.from_bytes(identity[:4], "little") >> 1


def differences(a: Study, b: Study) -> list[str]:
    """Return in what two studies differ, of all that decisions and results depend on; nothing if they agree."""
    one, other = a.ledger.fingerprint(), b.ledger.fingerprint()
    return [name for name in one if one[name] != other[name]]
