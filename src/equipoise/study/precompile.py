"""
What the first study on a machine compiles, in two processes.

A study needs its steps from the first ask on. Its strategy's functions are needed for the first answer, and code for
intervals and for replays with the first result. A fork compiles these and files them, while this process compiles the
steps.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from equipoise.base.inputs import Names
from equipoise.compiled import can_keep, fork, is_kept, start_compiler
from equipoise.engine.functions import compile_rule
from equipoise.inference.known import Known
from equipoise.ledger import steps
from equipoise.ledger.evidence import Answered, Lines
from equipoise.ledger.goal import Goal
from equipoise.ledger.snapshot import Design, Snapshot
from equipoise.ledger.state import ANSWERED, TICKET
from equipoise.problem import Objective
from equipoise.result.result import Result
from equipoise.strategies import Strategy, Support

# Arms, and samples of each, of the study that stands for any other: code is the same for any number of both.
ARMS, SAMPLES = 2, 12


def compile_ahead(strategy: Strategy, support: Support) -> None:
    """Compile what a first study needs in two processes, if nothing is compiled yet on this machine."""
    step, signature = steps.FIRST[0]
    if step.overloads or is_kept(step, signature) or not fork.possible() or not can_keep():
        return
    start_compiler()
    fork.begin(partial(_compile_result, strategy, support))
    for step, signature in steps.FIRST:
        step.compile(signature)


def _compile_result(strategy: Strategy, support: Support) -> None:
    """Compile what a result needs, by printing that of a small study."""
    params = strategy.params(ARMS * SAMPLES, ARMS, support)
    # The study itself needs these first.
    compile_rule(strategy, params)
    tickets = np.zeros(ARMS * SAMPLES, TICKET)
    tickets["arm"], tickets["status"] = np.arange(len(tickets)) % ARMS, ANSWERED
    low, high = support if isinstance(support, tuple) else (0.0, 1.0)
    # Without a support, one value is neither 0 nor 1, lest the samples look binary.
    tickets["value"] = low + (high - low) * (np.arange(len(tickets)) // ARMS % 2)
    if support is None:
        tickets["value"][:ARMS] = 0.5
    values = tickets["value"].reshape(SAMPLES, ARMS)
    missing = np.zeros(ARMS, np.int64)
    lines = Lines(ARMS, support, len(tickets))
    snapshot = Snapshot(
        names=Names.of(ARMS),
        strategy=strategy.name or type(strategy).__name__,
        support=support,
        objective=Objective(),
        counts=np.full(ARMS, SAMPLES),
        means=values.mean(axis=0),
        m2s=SAMPLES * values.var(axis=0),
        spent=len(tickets),
        bill=len(tickets),
        evidence=lines.look(tickets, Answered(len(tickets), 0, 0, 0), missing, support == "binary", None),
        design=Design(strategy, params, np.zeros(ARMS, bool)),
    )
    print(Result(Known(snapshot, Goal())))
