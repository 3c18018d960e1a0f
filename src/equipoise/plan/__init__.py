"""Plan before sampling: whole counts for variances that are known or guessed, and the errors to expect."""

from equipoise.plan.plan import Plan, plan
from equipoise.plan.read import read

__all__ = ["Plan", "plan", "read"]
