"""A study's state: buffers, steps, tickets, evidence, snapshot, goal."""

from equipoise.ledger.goal import Goal, Precision
from equipoise.ledger.snapshot import Snapshot
from equipoise.ledger.ticket import Ticket

__all__ = ["Goal", "Precision", "Snapshot", "Ticket"]
