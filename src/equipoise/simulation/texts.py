"""Parse laws, strategies, supports and objectives typed at a command line: gaussian:0,4, b-as:exploration=0.5."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import Any

from equipoise import strategies
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import did_you_mean, integer_in, number_in
from equipoise.problem import (
    Bernoulli,
    Constant,
    Empirical,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    LogNormal,
    Rademacher,
    Stratified,
    StudentT,
    Uniform,
)
from equipoise.strategies import Strategy, Support, check_support

LAWS: dict[str, Any] = {
    "gaussian": Gaussian,
    "rademacher": Rademacher,
    "bernoulli": Bernoulli,
    "uniform": Uniform,
    "exponential": Exponential,
    "laplace": Laplace,
    "lognormal": LogNormal,
    "student": StudentT,
    "constant": Constant,
}


def law(text: str) -> Law:
    """
    Return a law from its name and its parameters in order.

    Examples
    --------
    >>> law("gaussian:0,4"), law("rademacher")
    (Gaussian(mean=0.0, variance=4.0), Rademacher(scale=1.0))
    """
    name, colon, rest = text.strip().partition(":")
    name = name.lower()
    if name == "empirical":
        return Empirical([_number(part, text) for part in _parts(rest)])
    if name not in LAWS:
        known = [*LAWS, "empirical"]
        raise InvalidInput(f"a law must be one of {', '.join(known)}, got {name!r}{did_you_mean(name, known)}")
    made = LAWS[name]
    asked = [f for f in fields(made) if f.init]
    values = [_number(part, text) for part in _parts(rest)] if colon else []
    needed = sum(f.default is MISSING for f in asked)
    if not needed <= len(values) <= len(asked):
        names = ", ".join(f.name if f.default is MISSING else f"{f.name} ({f.default:g})" for f in asked)
        example = f"{name}:{','.join(_EXAMPLES[f.name] for f in asked)}"
        raise InvalidInput(f"{name} must have the parameters {names}, as in {example}, got {text!r}")
    return made(*map(float, values))


_EXAMPLES = {
    "mean": "0",
    "variance": "4",
    "scale": "2",
    "p": "0.3",
    "low": "0",
    "high": "1",
    "log_mean": "0",
    "log_sd": "1",
    "df": "5",
    "value": "3",
}


def strategy(text: str) -> Strategy:
    """
    Return a strategy from its name, with parameters by name where it has some.

    Examples
    --------
    >>> strategy("b-as:exploration=0.5")
    BAS(exploration=0.5, c1=None, c2=None, delta=None)
    """
    name, _, rest = text.strip().partition(":")
    made = strategies.get(name.lower())
    known = [f.name for f in fields(made) if f.init and f.name != "variances"]
    given: dict[str, float] = {}
    for part in _parts(rest):
        parameter, equals, value = (piece.strip() for piece in part.partition("="))
        if parameter not in known:
            if not known:
                raise InvalidInput(f"{name.lower()} has no parameters, got {parameter!r}")
            near = did_you_mean(parameter, known)
            raise InvalidInput(
                f"a parameter of {name.lower()} must be one of {', '.join(known)}, got {parameter!r}{near}"
            )
        if not equals or parameter in given:
            example = f"{name.lower()}:{parameter}=0.5"
            raise InvalidInput(f"each parameter must be given once with its value, as in {example}, got {text!r}")
        given[parameter] = _number(value, text)
    return made(**given)


def support(text: str | None) -> Support:
    """Return a support from `binary` or `low,high`; None from None."""
    if text is None or text == "binary":
        return check_support(text)
    ends = text.split(",")
    if len(ends) != 2:
        raise InvalidInput(f"support must be binary or its two ends, as in 0,1, got {text!r}")
    return check_support((_number(ends[0], text), _number(ends[1], text)))


def objective(text: str) -> float | Stratified:
    """
    Return an objective from p (inf for the largest loss), or from strata with their shares.

    Examples
    --------
    >>> objective("1"), objective("inf"), objective("stratified:0.3,0.7")
    (1, inf, Stratified(shares=(0.3, 0.7)))
    """
    name, colon, rest = text.strip().partition(":")
    if name.lower() == "stratified" and colon:
        return Stratified([_number(part, text) for part in _parts(rest)])
    try:
        p = _number(text, text)
    except ValueError:
        p = math.nan
    if not p > 0:
        raise InvalidInput(
            f"objective must be a positive number p, inf for the largest loss, or strata as in stratified:0.3,0.7, "
            f"got {text!r}"
        )
    return p


def numbers(text: str | None) -> list[float] | None:
    """Return numbers from a list with commas; None from None."""
    return None if text is None else [_number(part, text) for part in _parts(text)]


def _parts(text: str) -> list[str]:
    return text.split(",") if text.strip() else []


def _number(text: str, whole: str) -> float:
    """A number from text; an integer stays one, as some parameters are counts."""
    try:
        return integer_in(text)
    except ValueError:
        pass
    try:
        return number_in(text)
    except ValueError:
        raise InvalidInput(f"{text.strip()!r} in {whole!r} must be a number") from None
