"""What tells an evaluation from another, so that a store is continued with the same one only."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from inspect_ai import Epochs, Task
from inspect_ai._util.registry import has_registry_params, is_registry_dict, registry_value  # no public names
from inspect_ai.model import GenerateConfig, Model
from inspect_ai.solver import Plan
from pydantic import BaseModel

from equipoise.base.errors import InvalidInput
from equipoise.integrations import model_fingerprint as described

# What each part is called where it differs.
_PARTS: Final = {
    "tasks": "other tasks",
    "model": "another model",
    "solver": "another solver",
    "scorer": "another scorer",
    "value": "another function `value`",
    "epochs": "other epochs",
    "settings": "other settings of its tasks",
    "eval_options": "other eval_options",
    "questions": "other samples, or in another order or in other groups",
    "targets": "other targets of its samples",
    "choices": "other choices of its samples",
    "metadata": "other metadata of its samples",
    "files": "other files, setups or sandboxes of its samples",
    "cost_unit": "another unit",
}

# Of samples, which are many: the attributes that belong to a part.
_OF_SAMPLES: Final = {
    "questions": ("id", "input"),
    "targets": ("target",),
    "choices": ("choices",),
    "metadata": ("metadata",),
    "files": ("files", "setup", "sandbox"),
}

# Arguments of `eval` and settings of a model that say how samples are run and what is kept of them, not what is asked.
_HOW: Final = {
    "acp_server", "adaptive_connections", "attempt_timeout", "batch", "cache", "cache_prompt", "checkpoint",
    "continue_on_fail", "ctl_server", "debug_errors", "display", "eval_set_id", "eval_set_tasks", "fail_on_error",
    "log_buffer", "log_dir", "log_format", "log_images", "log_level", "log_level_transcript", "log_model_api",
    "log_realtime", "log_refusals", "log_shared", "max_connections", "max_dataset_memory", "max_retries",
    "max_samples", "max_sandboxes", "max_subprocesses", "max_tasks", "metadata", "model_cost_config",
    "notification", "retry_on_error", "sandbox_cleanup", "sandbox_prebuilt", "scan_id", "scanner", "score_display",
    "stream_idle_timeout", "tags", "task_retry_attempts", "timeout", "trace",
}  # fmt: skip

# Settings of a task besides its solver, its scorer and its epochs.
_SETTINGS: Final = (
    "model", "model_roles", "config", "setup", "sandbox", "approval", "message_limit", "token_limit",
    "token_limit_type", "turn_limit", "time_limit", "working_limit", "cost_limit", "version",
)  # fmt: skip

# What a store must not hold, and what may change without another model.
_SECRETS: Final = re.compile(r"(api_?|access_?)key|secret|password|authorization", re.IGNORECASE)

# Texts that are longer are cut, and told apart by a hash of the whole.
_LONGEST: Final = 100


def identity(
    tasks: Sequence[Task],
    questions: Iterable[tuple[Any, str, Any]],
    model: Any,
    scorer: str | None,
    value: Callable[[Any], float] | None,
    options: Mapping[str, Any],
) -> dict[str, str]:
    """
    Return what decides the scores of an evaluation, by part: in words, or as a hash where it is of many samples.

    Parameters
    ----------
    tasks
        The tasks.
    questions
        The group of each sample, the name of its task, and the sample.
    model, scorer, value, options
        As `evaluate` takes them.
    """
    asked = {name: option for name, option in options.items() if name not in _HOW}
    epochs = asked.pop("epochs", None)
    return {
        "tasks": ", ".join(task.name for task in tasks),
        "model": _words(os.environ.get("INSPECT_EVAL_MODEL") if model is None else model),
        "solver": _of_each(tasks, lambda task: task.solver),
        "scorer": ("" if scorer is None else f"{scorer} of ") + _of_each(tasks, lambda task: task.scorer),
        "value": _words(value),
        "epochs": _of_each(tasks, lambda task: epochs or [task.epochs or 1, *(task.epochs_reducer or ())]),
        "settings": _of_each(tasks, lambda task: {name: getattr(task, name, None) or None for name in _SETTINGS}),
        "eval_options": _words(asked),
        **_hashes(questions),
    }


def check_same(held: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse to continue another evaluation than the one that a store holds."""
    for part, other in _PARTS.items():
        was, now = held.get(part, ""), given.get(part, "")
        if was != now:
            which = "" if part in _OF_SAMPLES else f" ({was or 'none'} instead of {now or 'none'})"
            raise InvalidInput(
                f"store must hold the same evaluation, got one with {other}{which}; use another store or change it back"
            )


def _hashes(questions: Iterable[tuple[Any, str, Any]]) -> dict[str, str]:
    """Return what samples are made of, as a hash for each part."""
    found = {part: hashlib.blake2b(digest_size=8) for part in _OF_SAMPLES}
    for group, task, sample in questions:
        for part, names in _OF_SAMPLES.items():
            content = [getattr(sample, name) for name in names]
            found[part].update(_text([group, task, content] if part == "questions" else content).encode())
    return {part: content.hexdigest() for part, content in found.items()}


def _of_each(tasks: Sequence[Task], part: Callable[[Task], Any]) -> str:
    """Return a part of every task in words: once where it is the same for all."""
    found = {task.name: _words(part(task)) for task in tasks}
    same = len(set(found.values())) == 1
    return found[tasks[0].name] if same else _short("; ".join(f"{name}: {words}" for name, words in found.items()))


def _words(given: Any) -> str:
    """Return a text for a person that differs where what is described does; empty for nothing."""
    if given is None or isinstance(given, str):
        return given or ""
    text = _text(given)
    return _short(text[1:-1] if text[0] in "([" else text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... {described.short_hash(text)}"


def _text(given: Any) -> str:
    return described.text(given, _special)


def _special(given: Any, inner: described.Inner) -> str | None:
    """Return the text of what Inspect has besides plain values and functions; None for those."""
    if isinstance(given, Plan):
        return inner([given.steps, given.finish])
    if isinstance(given, Epochs):
        return inner([given.epochs, *(given.reducer or ())])
    if isinstance(given, GenerateConfig):
        return inner(given.model_dump(exclude_none=True, exclude=_HOW))
    if isinstance(given, BaseModel):
        return inner(given.model_dump(exclude_none=True, exclude={"id"}))  # messages have random ids
    if isinstance(given, Model):
        arguments = {"base_url": given.api.base_url, "config": given.config} | given.model_args
        return f"{given}{_arguments(arguments, inner)}".removesuffix("()")
    if has_registry_params(given) and not isinstance(given, Sequence):  # chains are sequences
        given = registry_value(given)
    if is_registry_dict(given):
        return f"{given['name']}{_arguments(given['params'], inner)}"
    return _arguments(given, inner) if isinstance(given, Mapping) else None


def _arguments(given: Mapping[Any, Any], inner: described.Inner) -> str:
    """Return the arguments that were given, by name, without secrets."""
    texts = {str(name): inner(argument) for name, argument in given.items() if argument is not None}
    shown = [f"{name}={texts[name]}" for name in sorted(texts) if texts[name] != "()" and not _SECRETS.search(name)]
    return f"({', '.join(shown)})"
