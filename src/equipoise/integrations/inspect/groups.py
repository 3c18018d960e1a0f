"""The groups that samples of inspect_ai belong to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import shown

# A key of the samples' metadata, a function of a sample, or None for the task itself.
GroupBy = str | Callable[[Any], Hashable] | None


def check_group_by(group_by: Any) -> None:
    """Refuse what cannot say which group a sample belongs to."""
    if not (group_by is None or isinstance(group_by, str) or callable(group_by)):
        raise TypeError(
            "group_by must be a key of the samples' metadata, a function of a sample, or None for one group per task, "
            f"got {shown(group_by)}"
        )


def with_ids(samples: Iterable[Any]) -> list[Any]:
    """Return samples that have ids: their own, or their position from 1 on, as inspect_ai numbers them."""
    return [
        sample.model_copy(update={"id": position}) if sample.id is None else sample
        for position, sample in enumerate(samples, start=1)
    ]


def check_ids(task: str, samples: Iterable[Any]) -> None:
    """Refuse a task with two samples of the same id, which inspect_ai could not tell apart."""
    twice = [id for id, many in Counter(str(sample.id) for sample in samples).items() if many > 1]
    if twice:
        raise InvalidInput(f"the samples of task {task!r} must have different ids, got {twice[0]} twice or more")


def groups_of(task: str, samples: Sequence[Any], group_by: GroupBy) -> list[Hashable]:
    """Return the group of each sample of a task, in order."""
    return [_group_of(task, sample, group_by) for sample in samples]


def _group_of(task: str, sample: Any, group_by: GroupBy) -> Hashable:
    if group_by is None:
        return task
    if callable(group_by):
        group = group_by(sample)
    else:
        metadata = sample.metadata or {}
        if group_by not in metadata:
            raise InvalidInput(
                f"group_by must be a key of every sample's metadata, got {group_by!r}, "
                f"which sample {shown(sample.id)} of task {task!r} does not have"
            )
        group = metadata[group_by]
    if isinstance(group, np.generic):
        group = group.item()
    if not _usable(group):
        raise TypeError(
            f"group_by must give a text or a number for every sample, got {shown(group)} "
            f"for sample {shown(sample.id)} of task {task!r}"
        )
    return group


def _usable(group: Any) -> bool:
    """Whether samples can have this group in common: a text, a number that is one, or a tuple of what can be hashed."""
    if isinstance(group, tuple):
        return all(
            isinstance(each, Hashable) and (not isinstance(each, float | tuple) or _usable(each)) for each in group
        )
    return isinstance(group, str | int) or (isinstance(group, float) and not math.isnan(group))
