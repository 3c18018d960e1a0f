"""Plan before sampling: whole counts for variances that are known or guessed, and the errors to expect."""

from equipoise.planning.plan import Plan, plan
from equipoise.planning.read import read

__all__ = ["Plan", "plan", "read"]
