"""Laws of arms, objectives, and the best allocation for known variances."""

from equipoise.problem.contrasts import Contrasts
from equipoise.problem.laws import (
    Bernoulli,
    Constant,
    Empirical,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    LogNormal,
    Rademacher,
    StudentT,
    Uniform,
)
from equipoise.problem.objective import Objective, Stratified
from equipoise.problem.problem import Problem

__all__ = [
    "Bernoulli",
    "Constant",
    "Contrasts",
    "Empirical",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Law",
    "LogNormal",
    "Objective",
    "Problem",
    "Rademacher",
    "Stratified",
    "StudentT",
    "Uniform",
]
