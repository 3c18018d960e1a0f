"""The groups of samples, and the ids of those that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from inspect_ai.dataset import Sample

from equipoise.integrations.inspect.groups import groups_of, with_ids


def test_ids_are_those_of_the_dataset() -> None:
    given = [Sample(input="a", id="x"), Sample(input="b"), Sample(input="c", id=7)]
    assert [each.id for each in with_ids(given)] == ["x", 2, 7]
    assert given[1].id is None


def test_a_group_is_in_the_metadata_or_what_a_function_says_or_the_task() -> None:
    given = [Sample(input="one", metadata={"level": 3}), Sample(input="other", metadata={"level": "high"})]
    assert groups_of("alpha", given, "level") == [3, "high"]
    assert groups_of("alpha", given, lambda sample: len(sample.input)) == [3, 5]
    assert groups_of("alpha", given, None) == ["alpha", "alpha"]


@pytest.mark.parametrize(
    ("given", "group"), [(np.int64(7), 7), (np.float32(0.5), 0.5), (np.str_("a"), "a"), ((1, "a"), (1, "a"))]
)
def test_a_group_may_be_a_number_of_numpy_or_a_tuple(given: Any, group: Any) -> None:
    (found,) = groups_of("alpha", [Sample(input="one")], lambda sample: given)
    assert found == group
    assert type(found) is type(group)


@pytest.mark.parametrize(
    "given", [None, float("nan"), np.float64("nan"), ("a", float("nan")), ("a", ["b"]), ["a"], ((1, [2]),)]
)
def test_what_samples_cannot_have_in_common_is_no_group(given: Any) -> None:
    with pytest.raises(TypeError, match=r"must give a text or a number for every sample, got .* for sample 3 of task"):
        groups_of("alpha", [Sample(input="one", id=3)], lambda sample: given)
