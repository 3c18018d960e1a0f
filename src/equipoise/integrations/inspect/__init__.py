"""Evaluate language models with inspect_ai, with no more samples than each group of questions needs."""

from equipoise.base.inputs import install_hint

try:
    import inspect_ai  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "inspect_ai":
        raise
    raise ModuleNotFoundError(
        f"equipoise.integrations.inspect needs inspect_ai, which is not installed; {install_hint('inspect')}",
        name="inspect_ai",
    ) from None

from equipoise.integrations.inspect.evaluation import evaluate
from equipoise.integrations.inspect.stopping import EarlyStopping

__all__ = ["EarlyStopping", "evaluate"]
