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

if TYPE_CHECKING:
    from equipoise import intervals, strategies, testing, theory
    from equipoise.base.errors import (
        EquipoiseError,
        InvalidInput,
        Refused,
        SamplerFailed,
        StoreDamaged,
        StoreUnavailable,
    )
    from equipoise.client import RemoteStudy, connect
    from equipoise.ledger import Ticket
    from equipoise.planning.plan import Plan, plan
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
    from equipoise.result import Result
    from equipoise.run import Progress, SharedStudy
    from equipoise.run import open_study as open
    from equipoise.run.estimate import estimate
    from equipoise.simulation import simulate, simulate_budgets
    from equipoise.study import Study

__version__ = "1.0.0"

__all__ = [
    "Bernoulli",
    "Constant",
    "Contrasts",
    "Empirical",
    "EquipoiseError",
    "Exponential",
    "Gaussian",
    "InvalidInput",
    "Laplace",
    "Law",
    "LogNormal",
    "Plan",
    "Problem",
    "Progress",
    "Rademacher",
    "Refused",
    "RemoteStudy",
    "Result",
    "SamplerFailed",
    "SharedStudy",
    "StoreDamaged",
    "StoreUnavailable",
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
    "simulate_budgets",
    "strategies",
    "testing",
    "theory",
]

# Where each name is found when it is first used: to import everything takes most of a second. A module is its own name.
_FOUND_IN = {
    "client": ("RemoteStudy", "connect"),
    "base.errors": (
        "EquipoiseError",
        "InvalidInput",
        "Refused",
        "SamplerFailed",
        "StoreDamaged",
        "StoreUnavailable",
    ),
    "simulation": ("simulate", "simulate_budgets"),
    "planning": ("Plan", "plan"),
    "problem": (
        "Bernoulli",
        "Constant",
        "Contrasts",
        "Empirical",
        "Exponential",
        "Gaussian",
        "Laplace",
        "Law",
        "LogNormal",
        "Problem",
        "Rademacher",
        "Stratified",
        "StudentT",
        "Uniform",
    ),
    "run": ("Progress", "SharedStudy", "estimate", "open"),
    "result": ("Result",),
    "ledger": ("Ticket",),
    "study": ("Study",),
}
# Names that are other ones there.
_NAMED = {"open": "open_study"}
_MODULE_OF = {name: module for module, names in _FOUND_IN.items() for name in names}


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    if name not in _MODULE_OF:
        return importlib.import_module(f"equipoise.{name}")
    found = getattr(importlib.import_module(f"equipoise.{_MODULE_OF[name]}"), _NAMED.get(name, name))
    globals()[name] = found
    return found
