"""
equipoise: spend a sampling budget so that every mean is estimated equally well.

>>> import equipoise as eq
>>> study = eq.Study(["a", "b"], budget=2000)
>>> ticket = study.ask()
>>> study.tell(ticket, 0.7)
>>> result = study.result()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from equipoise import intervals, strategies, theory
from equipoise.client import RemoteStudy, connect
from equipoise.errors import EquipoiseError
from equipoise.lab import simulate

# After this the name is the function; `from equipoise.plan import Plan` finds the module all the same.
from equipoise.plan import Plan, plan
from equipoise.problem import (
    Bernoulli,
    Constant,
    Contrasts,
    Empirical,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    LogNormal,
    Problem,
    Rademacher,
    Stratified,
    StudentT,
    Uniform,
)
from equipoise.run import Progress, SharedStudy, estimate
from equipoise.run import open_study as open
from equipoise.study import Result, Study, Ticket

if TYPE_CHECKING:
    from equipoise import testing

__version__ = "1.0.0"

__all__ = [
    "Bernoulli",
    "Constant",
    "Contrasts",
    "Empirical",
    "EquipoiseError",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Law",
    "LogNormal",
    "Plan",
    "Problem",
    "Progress",
    "Rademacher",
    "RemoteStudy",
    "Result",
    "SharedStudy",
    "Stratified",
    "StudentT",
    "Study",
    "Ticket",
    "Uniform",
    "connect",
    "estimate",
    "intervals",
    "open",
    "plan",
    "simulate",
    "strategies",
    "testing",
    "theory",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "testing":  # needs pytest and hypothesis, which not everybody has
        return importlib.import_module("equipoise.testing")
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
