"""
What the first simulation on a machine compiles, in two processes.

A fork compiles what has the strategy in it and files it, while this process compiles what draws samples and then the
kernel, for which it finds what the fork has filed so far.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from equipoise.compiled import anything_kept, can_keep, fork, start_compiler
from equipoise.engine import cpu
from equipoise.engine.kernels.lanes import strategy_parts
from equipoise.engine.setup import Setup
from equipoise.engine.streams import Laws
from equipoise.strategies import check_compiles


def compile_ahead(setup: Setup) -> None:
    """Compile what a first simulation with many runs side by side needs, if nothing is compiled yet on this machine."""
    if setup.one_by_one or len(setup.problem) > cpu.TUNING.many:
        return
    if anything_kept() or not fork.possible() or not can_keep():
        return
    start_compiler()
    fork.begin(partial(_compile_strategy, setup))
    Laws.of(setup.problem, setup.seed, [0], cpu.kernel(setup).drawn)


def _compile_strategy(setup: Setup) -> None:
    """Compile the strategy, and the parts of the kernel that it is in."""
    check_compiles(setup.strategy, setup.params)
    kernel: Any = cpu.kernel(setup).run
    for part, signature in strategy_parts(kernel.py_func, max(len(setup.params), 1)):
        part.compile(signature)
