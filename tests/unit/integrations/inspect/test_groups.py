"""The groups of samples, and the ids of those that have none."""

from __future__ import annotations

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
