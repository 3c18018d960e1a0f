"""Arms whose law is known, and what the best allocation could do on them."""

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
