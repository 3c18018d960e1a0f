"""What requests and responses look like."""

from __future__ import annotations

import itertools
import re
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from equipoise.base.inputs import LONGEST_NAME, MOST_SECONDS, is_printable, shown
from equipoise.ledger.goal import Stopping
from equipoise.problem import Contrasts
from equipoise.server.access import Role
from equipoise.server.tickets import LENGTH

T = TypeVar("T")

# Names of studies are parts of paths.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
_ORIGIN: Final = r"^(\*|https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9A-Fa-f:]+\](:[0-9]{1,5})?)$"
_PICTURE: Final = re.compile(r"(https?://|/|data:image/(png|jpeg|gif|webp|svg\+xml)[;,])[^\s\"'<>]+")

# Members of a mapping that are checked together, and how many more members than it knows an object may have.
_TOGETHER: Final = 10


def _plain(text: str) -> str:
    """Refuse control characters and what cannot be drawn."""
    if not is_printable(text.replace("\n", " ")):
        raise ValueError("must not contain control characters")
    return text


def _picture(text: str) -> str:
    if not _PICTURE.fullmatch(text):
        raise ValueError("must be the URL of a picture")
    return text


def _role(name: str) -> Role:
    return Role(name)  # the class itself has a signature that pydantic cannot read from Python 3.12 on


def _matching(pattern: str, words: str) -> AfterValidator:
    """Refuse what does not match a pattern, in words."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {words}")
        return text

    return AfterValidator(check)


def _in_parts(given: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Check a mapping some members at a time, as pydantic lists whatever is wrong with all it is given."""
    if not isinstance(given, dict):
        return check(given)
    found: dict[str, Any] = {}
    members = iter(given.items())
    while part := dict(itertools.islice(members, _TOGETHER)):
        found |= check(part)
    return found


def _as_given(given: Any, check: ValidatorFunctionWrapHandler) -> Any:
    check(given)
    return given


# A list is refused at its first mistake, and a mapping after a few: listing a million would block all other requests.
Several = Annotated[list[T], Field(fail_fast=True)]
ByName = Annotated[dict[str, T], WrapValidator(_in_parts)]

Name = Annotated[
    str,
    Field(json_schema_extra={"pattern": NAME}),
    _matching(NAME, "up to 80 letters, digits, dots, hyphens and underscores, a letter or digit first"),
]
Origin = Annotated[
    str,
    Field(max_length=300, json_schema_extra={"pattern": _ORIGIN}),
    _matching(_ORIGIN, "an origin such as https://example.org, without a path, or * for all"),
]
Text = Annotated[str, AfterValidator(_plain)]
AnswerKind = Literal["yes-no", "1-5", "number", "custom"]
# As given: an integer stays one.
Number = Annotated[float, WrapValidator(_as_given)]
ByArm = ByName[Number] | Several[Number]
ArmText = Annotated[str, Field(max_length=LONGEST_NAME)]


class Body(BaseModel):
    """What all bodies of requests keep: no unknown members, no other types, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        """Refuse an object with very many members at once: each that is not known would be listed."""
        most = len(cls.model_fields) + _TOGETHER
        if isinstance(given, dict) and len(given) > most:
            raise ValueError(f"must have at most {most} members, got {len(given):,}")
        return given


class Show(Body):
    """What a web page shows of an arm."""

    title: Text = Field("", max_length=200)
    text: Text = Field("", max_length=5_000)
    picture: Annotated[str, AfterValidator(_picture)] | None = Field(None, max_length=500_000)


class Poll(Body):
    """
    A study as a poll on web pages.

    `origins` are those of the pages, such as https://example.org, or * for all.
    """

    question: Text = Field("", max_length=500)
    answer: AnswerKind = "yes-no"
    arms: ByName[Show] = Field(default_factory=dict)
    respect_dnt: bool = True
    origins: Several[Origin] = Field(default_factory=list, max_length=100)


class Shares(Body):
    """The objective of strata: their shares of the whole."""

    shares: ByArm


class OfContrasts(Body):
    """A precision of contrasts: of the differences to an arm, of the weighted sums that are named, or of all pairs."""

    contrasts: float = Field(gt=0)
    to: ArmText | None = None
    of: Several[ByName[Number]] | None = None

    @property
    def meant(self) -> Contrasts:
        """What the study is asked for."""
        return Contrasts(self.contrasts, to=self.to, of=self.of)


HalfWidth = Number | Annotated[str, Field(max_length=50)]
Precision = Annotated[
    HalfWidth | OfContrasts | ByName[HalfWidth] | Several[HalfWidth], Field(union_mode="left_to_right")
]


class Create(Body):
    """A new study. All but the name, the title and the poll is as in `equipoise.open`."""

    name: Name = Field(examples=["poll"])
    title: Text = Field("", max_length=200)
    arms: (
        Several[Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]]
        | Annotated[int, Field(ge=1, le=1_000_000)]
    ) = Field(examples=[["red", "blue"]])
    budget: Number | None = None
    precision: Precision | None = None
    level: float = Field(0.95, gt=0, lt=1)
    interval: Stopping = "fixed-width"
    support: Literal["binary"] | Annotated[tuple[Number, Number], Field(strict=False)] | None = None
    strategy: str = Field("auto", max_length=50)
    objective: Number | Literal["inf"] | Shares = "inf"
    weights: ByArm | None = None
    costs: ByArm | None = None
    populations: ByName[int] | Several[int] | None = None
    poll: Poll | None = None

    @model_validator(mode="after")
    def _fits(self) -> Create:
        if isinstance(self.arms, list) and not self.arms:
            raise ValueError("arms must have at least one name")
        names = self.arms if isinstance(self.arms, list) else map(str, range(self.arms))
        if self.poll is not None and (unknown := set(self.poll.arms) - set(names)):
            raise ValueError(f"poll must show arms of the study, got {shown(min(unknown))}")
        return self


class OneArm(Body):
    """An arm of a study, by its name."""

    arm: ArmText | Number


class Extend(Body):
    """A larger budget, or another precision; what is left out stays as it is."""

    budget: Number | None = None
    precision: Precision | None = None
    level: float | None = Field(None, gt=0, lt=1)
    interval: Stopping | None = None


class NewKey(Body):
    """A new key of a study."""

    role: Annotated[Literal["ask", "work", "read"], AfterValidator(_role)]
    label: Text = Field("", max_length=100)


class AskBody(Body):
    """
    An ask for tickets.

    With an `idempotency_key` that was used before, the same tickets are returned. A `respondent` who was asked before
    gets the same ticket again, or with an *ask* key none if it was answered. Where the caller can show only some kinds
    of `answers`, a poll of another kind is refused. An *ask* key gets one ticket at a time, and cannot choose its
    `lease`.
    """

    count: int = Field(1, ge=1)
    lease: float | None = Field(None, gt=0)
    idempotency_key: str | None = Field(None, min_length=1, max_length=200)
    respondent: str | None = Field(None, min_length=1, max_length=200)
    answers: Several[AnswerKind] | None = Field(None, min_length=1, max_length=4)


TicketText = Annotated[str, Field(min_length=LENGTH, max_length=LENGTH, examples=["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"])]


class AnswerBody(Body):
    """The answer to a ticket: a `value`, or `declined`."""

    ticket: Annotated[str, Field(max_length=200)]
    value: float | None = None
    declined: Literal[True] | None = None
    cost: float | None = Field(None, ge=0)
    seconds: float | None = Field(None, ge=0, le=MOST_SECONDS)

    @model_validator(mode="after")
    def _one_of_both(self) -> AnswerBody:
        if (self.value is None) == (self.declined is None):
            raise ValueError("an answer must have either a value or declined: true")
        return self


class TellBody(Body):
    """
    Answers to tickets; one that is known already is passed over.

    Each is taken or refused by itself. If the request is `atomic`, all are taken or none, and each must have a value.
    """

    answers: Several[AnswerBody] = Field(min_length=1)
    atomic: bool = False

    @model_validator(mode="after")
    def _values_if_atomic(self) -> TellBody:
        if self.atomic and any(answer.value is None for answer in self.answers):
            raise ValueError("each answer of an atomic request must have a value")
        return self


class ForgetBody(Body):
    """Tickets that will not be answered."""

    tickets: Several[Annotated[str, Field(max_length=200)]] = Field(min_length=1)


# ---- responses


class HandedTicket(BaseModel):
    """A ticket and its arm."""

    ticket: TicketText
    arm: str | int | float


class Tickets(BaseModel):
    """
    The tickets of an ask.

    `reason` says why there are none: spent, reached, retired, used up, paused, archived or do-not-track; or that the
    respondent whose ticket it is has answered. With an *ask* key there is no response with a reason, but the status
    204; `question`, `answer`, `show` and `support` are what a web page needs.
    """

    tickets: list[HandedTicket]
    reason: str | None = None
    question: str | None = None
    answer: str | None = None
    show: Show | None = None
    support: Literal["binary"] | list[float] | None = None


class RefusedTicket(BaseModel):
    """A ticket that is refused or too late: which of the request's it is, and why."""

    index: int
    detail: str


class TicketOutcomes(BaseModel):
    """
    What became of each ticket of the request, in order: taken, known, forgotten, late or refused.

    A ticket is late that was given back when its lease was over, and whose place in the budget another one took since.
    `refused` says why of all that are late or refused.
    """

    outcomes: list[Literal["taken", "known", "forgotten", "late", "refused"]]
    refused: list[RefusedTicket]


class StudyProgress(BaseModel):
    """How far a study is. `remaining` is null without a budget."""

    name: str
    title: str
    status: Literal["open", "paused", "archived"]
    arms: int
    budget: float | None
    precision: Any
    level: float
    interval: Stopping
    spent: float
    remaining: float | None
    samples: int
    in_flight: int
    done: bool


class StudyDetails(StudyProgress):
    """A study: its progress and its options."""

    created: float | None
    names: list[str | int | float]
    retired: list[str | int | float]
    strategy: str
    support: Literal["binary"] | list[float] | None
    poll: Poll | None


class KeyMade(BaseModel):
    """A key; `key` is the secret, which is shown when it is made, and always for those of role ask."""

    id: str
    role: Literal["ask", "work", "read"]
    label: str
    created: float
    key: str | None


class Created(StudyDetails):
    """A new study; with an *ask* key if it has a poll."""

    keys: list[KeyMade]


class Unreadable(BaseModel):
    """A study whose log cannot be read, and why."""

    name: str
    detail: str


class Studies(BaseModel):
    """All studies, and those that cannot be read."""

    studies: list[StudyProgress]
    unreadable: list[Unreadable]


class Keys(BaseModel):
    """The keys of a study."""

    keys: list[KeyMade]


class ProblemDetails(BaseModel):
    """A refusal, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
