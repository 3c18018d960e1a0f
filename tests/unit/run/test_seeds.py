"""Seeds: pure, all different, the same in bulk as one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equipoise.run import seeds


def test_known_values() -> None:
    """SplitMix64's first outputs from the state 1234567, as its authors' code gives them."""
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert seeds.seeds(1234567, np.arange(5)).tolist() == expected
    assert [seeds.seed(1234567, i) for i in range(5)] == expected


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**40), min_size=1, max_size=20))
def test_in_bulk_as_one_by_one(base: int, indices: list[int]) -> None:
    assert seeds.seeds(base, np.array(indices)).tolist() == [seeds.seed(base, i) for i in indices]


def test_a_base_for_each_seed_and_arm() -> None:
    arms = ["a", "b", 1, "1", 1.5, ("a", 1), None, frozenset([1])]
    assert len({seeds.base(seed, arm) for seed in range(50) for arm in arms}) == 50 * len(arms)
    # A store from before must go on with the seeds it had.
    assert seeds.base(1, "a") == 2355653153244093569


def test_an_order_of_chance() -> None:
    """Every item once; each place equally likely for the first item: 6,000 orders of 6, within five standard errors."""
    orders = np.array([seeds.order(seeds.base(s, "a"), 6) for s in range(6000)])
    assert (np.sort(orders, axis=1) == np.arange(6)).all()
    for place in range(6):
        share = (orders[:, place] == 0).mean()
        assert abs(share - 1 / 6) < 5 * (5 / 36 / 6000) ** 0.5
