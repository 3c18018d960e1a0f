"""When a study looks whether arms are known well enough."""

from __future__ import annotations

import math

import pytest

from equipoise.ledger import looks


@pytest.mark.parametrize("arms", [1, 2, 7, 1000])
def test_looks_are_a_fixed_sequence(arms: int) -> None:
    """Each look follows the one before by a step, from wherever one asks for the next."""
    found = [0]
    while found[-1] < 300 * arms:
        found.append(looks.next_look(found[-1], arms))
        assert found[-1] == found[-2] + looks.step(found[-2], arms)
    for samples in range(0, 200 * arms, max(1, arms // 3)):
        assert looks.next_look(samples, arms) == min(look for look in found if look > samples)


def test_a_study_of_one_arm_is_looked_at_after_each_sample_at_first() -> None:
    """As the replay of its stop assumes, which begins with two samples."""
    assert [looks.next_look(n, 1) for n in range(255)] == list(range(1, 256))
    assert looks.next_look(256, 1) == 258


def test_looks_reach_beyond_any_number_of_samples() -> None:
    """And there are not many of them: each takes time for all arms."""
    many, samples = 0, 0
    while samples < 10**15:
        samples, many = looks.next_look(samples, 3), many + 1
    assert many < 128 * (2 + math.log(10**15 / 128))
