"""A poll of six products on made-up customers, once with the default strategy and once split evenly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.base.inputs import integer
from equipoise.problem import Bernoulli
from equipoise.result import Result
from equipoise.result.summary import even_split
from equipoise.study import Study

# The share of all customers who like each product. The poll does not know it; some products divide opinion, others do
# not.
TASTE = {
    "cardamom coffee": 0.52,
    "seaweed crisps": 0.31,
    "oat ice cream": 0.90,
    "beet lemonade": 0.08,
    "salted liquorice": 0.04,
    "chilli chocolate": 0.97,
}
CUSTOMERS = 3000
MOST_CUSTOMERS = 10**6
# Every product is asked about twice before anything is decided.
LEAST_CUSTOMERS = 2 * len(TASTE)
# With as many as this, the default strategy is ahead of an even split.
ENOUGH_CUSTOMERS = 300


def poll(strategy: str, customers: int = CUSTOMERS, seed: int = 1, asked: Callable[[int], Any] | None = None) -> Result:
    """
    Ask customers about one product each, chosen by the strategy; an answer is 1 if the customer likes it, else 0.

    Parameters
    ----------
    strategy
        The name of a strategy.
    customers
        How many customers to ask.
    seed
        Decides every customer's answer, so that two polls with the same seed differ in the strategy alone.
    asked
        Called every hundred customers with the number asked since the last call.
    """
    customers = integer("customers", customers, LEAST_CUSTOMERS, MOST_CUSTOMERS)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    study = Study(TASTE, budget=customers, strategy=strategy, support="binary")
    answers = {product: iter(Bernoulli(p).sample(rng, customers)) for product, p in TASTE.items()}
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, next(answers[ticket.arm]))  # type: ignore[index]
        if asked and (ticket.id + 1) % 100 == 0:
            asked(100)
    return study.result()


def comparison(result: Result, even: Result) -> str:
    """Return one sentence on how much better a poll did than one that asked about all products evenly."""
    ours, theirs = (200 * float(poll.intervals(0.95).half_widths.max()) for poll in (result, even))
    needed = even_split(result.known, "customers")
    if round(ours, 1) >= round(theirs, 1) or not needed:
        more = f"; try {ENOUGH_CUSTOMERS} or more" if result.samples < ENOUGH_CUSTOMERS else ""
        return f"With {result.samples:,} customers there is no difference yet{more}."
    return (
        f"With {result.samples:,} customers, the widest interval is {ours:.1f} percentage points wide instead of "
        f"{theirs:.1f}. {needed}"
    )
