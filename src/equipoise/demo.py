"""The main job on made-up customers: a poll of six products, once with the default strategy and once spread evenly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.problem import Bernoulli
from equipoise.study import Result, Study

# What share of all customers likes each product. The poll does not know; some divide opinion, on others all agree.
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


def poll(strategy: str, customers: int = CUSTOMERS, seed: int = 1, asked: Callable[[int], Any] | None = None) -> Result:
    """
    Ask so many customers about one product each, which the strategy picks; 1 is for liking it.

    `asked` is called with the number of customers just asked, now and then.
    """
    if customers > MOST_CUSTOMERS:
        raise ValueError(f"customers={customers} will not do; {MOST_CUSTOMERS:,} are the most that are made up")
    study = Study(TASTE, budget=customers, strategy=strategy, support="binary")
    rng = np.random.default_rng(seed)
    # Customer i of a product answers the same in every poll with this seed, so that two polls differ in the strategy
    # alone.
    answers = {product: iter(Bernoulli(p).sample(rng, customers)) for product, p in TASTE.items()}
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, next(answers[ticket.arm]))  # type: ignore[index]
        if asked and (ticket.id + 1) % 100 == 0:
            asked(100)
    return study.result()


def gain(result: Result, uniform: Result) -> str:
    """What was gained, in one sentence."""
    ours, theirs = 100 * math.sqrt(result.loss), 100 * math.sqrt(uniform.loss)
    return (
        f"With {result.samples:,} customers the worst-known product is known to ±{ours:.2f} points instead of "
        f"±{theirs:.2f}; asking evenly would have needed about {result.uniform_samples:,.0f} customers for that."
    )
