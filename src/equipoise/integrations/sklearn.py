"""Accuracies of a classifier by class, from as few predictions as a precision needs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import install_hint, shown
from equipoise.base.keywords import suggests_keywords
from equipoise.integrations import model_fingerprint as described
from equipoise.integrations.pools import Answers, ItemAnswer, sample
from equipoise.ledger.goal import Stopping
from equipoise.result import Result
from equipoise.run.progress import Progress
from equipoise.strategies import Strategy

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise
    raise ModuleNotFoundError(
        f"equipoise.integrations.sklearn needs scikit-learn, which is not installed; {install_hint('sklearn')}",
        name="sklearn",
    ) from None

import joblib
from sklearn.utils import _safe_indexing, check_consistent_length, indexable
from sklearn.utils.multiclass import type_of_target


@suggests_keywords
def per_class_accuracy(
    estimator: Any,
    X: Any,
    y: Any,
    precision: Any = None,
    *,
    budget: int | None = None,
    level: float = 0.95,
    interval: Stopping = "fixed-width",
    strategy: str | Strategy = "auto",
    batch: int | None = None,
    seed: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Progress], Any] | None = None,
) -> Result:
    """
    Estimate a classifier's accuracy on each class, predicting only the rows that the precision needs.

    The accuracy of a class is the share of its rows that are predicted as that class, its recall. Rows are drawn at
    random, without replacement: a class whose rows are used up is known exactly.

    Parameters
    ----------
    estimator
        Anything that has a method `predict`, which is called with rows of `X`. Its `classes_`, if it has them, must
        include classes of `y`.
    X, y
        The rows and their classes: arrays, data frames, sparse matrices or lists.
    precision
        Stop when every accuracy is known to plus or minus this, as in `estimate`.
    budget
        The most rows to predict.
    level, interval, strategy, seed, progress
        As in `estimate`.
    batch
        How many rows to predict at once. By default four of each class at first, and later an eighth of those so far,
        of the classes whose accuracy is still open.
    store
        A path (SQLite) or a postgresql:// URL. Everything is saved there, and the same call with the same store
        continues where the last one ended. Other rows and other parameters of the estimator are refused. That it was
        fitted again cannot be seen, so use another store then.

    Returns
    -------
    Result
        Its arms are the classes, in sorted order.

    Raises
    ------
    EquipoiseError
        If `predict` fails, or does not return one class for each row. What was predicted before is kept: in the store,
        and in the error's attribute `study`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from equipoise.integrations.sklearn import per_class_accuracy
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GaussianNB().fit(X[:600], y[:600])
    >>> result = per_class_accuracy(model, X[600:], y[600:], precision=0.1, seed=1)
    >>> result.reached, result.samples < len(y[600:])
    (True, True)
    """
    if not callable(getattr(estimator, "predict", None)):
        raise TypeError(f"estimator must have a method `predict`, got {shown(estimator)}")
    rows, labels = _checked(X, y)
    classes, codes = np.unique(labels, return_inverse=True)
    names = classes.tolist()
    own = getattr(estimator, "classes_", None)
    if own is not None and set(names).isdisjoint(own := np.asarray(own).ravel().tolist()):
        raise InvalidInput(f"estimator must know classes of y such as {shown(names[0])}, got {shown(own)}")

    def answer(items: Sequence[int]) -> Answers:
        try:
            predicted = np.asarray(estimator.predict(_safe_indexing(rows, np.array(items))), dtype=object)
        except Exception as error:
            return Answers([None] * len(items), f"estimator.predict failed: {type(error).__name__}: {error}", error)
        if failure := _unusable(predicted, len(items), names[0]):
            return Answers([None] * len(items), failure)
        correct = predicted == labels[items].astype(object)
        return Answers([ItemAnswer(float(each)) for each in correct.tolist()])

    return sample(
        {name: np.flatnonzero(codes == k).tolist() for k, name in enumerate(names)},
        answer,
        budget=budget,
        precision=precision,
        level=level,
        interval=interval,
        strategy=strategy,
        support="binary",
        seed=seed,
        store=store,
        about=None if store is None else {"estimator": _described(estimator), "rows": joblib.hash((rows, labels))},
        batch=batch,
        progress=progress,
    )


def _missing(label: Any) -> bool:
    """Whether a label is None, NaN or pandas's NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # NA is neither equal nor unequal
        return True


def _unusable(predicted: Any, size: int, known: Any) -> str:
    """Return why predictions cannot be compared with classes such as `known`, in words; empty if they can."""
    if predicted.shape != (size,):
        return (
            f"estimator.predict must return one class for each of {size:,} rows, got an array of shape "
            f"{predicted.shape}"
        )
    values = predicted.tolist()
    wrong = [each for each in values if _missing(each) or isinstance(each, str) != isinstance(known, str)]
    if not wrong and type_of_target(np.array(values)).startswith("continuous"):
        wrong = [each for each in values if each != round(each)]
    return f"estimator must predict classes of y such as {shown(known)}, got {shown(wrong[0])}" if wrong else ""


def _described(estimator: Any) -> str:
    """Return an estimator as it is printed, with a hash of all its parameters, which are not all printed in full."""
    printed = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(estimator).split()))
    return f"{printed} {described.short_hash(described.text(estimator, _special))}"


def _special(given: Any, inner: described.Inner) -> str | None:
    """Return the text of arrays, tables, estimators and types; None for anything else."""
    if isinstance(given, np.generic):
        return inner(given.item())
    if isinstance(given, np.ndarray):
        content = inner(given.tolist()) if given.dtype.hasobject else joblib.hash(np.ascontiguousarray(given))
        return f"array {given.shape} {given.dtype} {content}"
    name = f"{type(given).__module__}.{type(given).__qualname__}"
    if isinstance(given, type):
        return f"{given.__module__}.{given.__qualname__}"
    if callable(getattr(given, "get_params", None)):
        return f"{name} {inner(given.get_params(deep=False))}"
    if hasattr(given, "shape"):  # a data frame, or a sparse matrix
        return f"{name} {joblib.hash(given)}"
    return None


def _checked(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows that can be indexed and an array of their classes, or refuse them."""
    for row, label in enumerate(given := np.asarray(y, dtype=object).reshape(-1)):
        if _missing(label):
            raise InvalidInput(f"y must have a label for every row, got {label!r} for row {row:,}")
    if not len(given):
        raise InvalidInput("y must have at least one label, got none")
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise InvalidInput(f"y must be one class for each row, got a target that is {kind}")
    labels = np.asarray(y).reshape(-1)
    (rows,) = indexable(X)
    check_consistent_length(rows, labels)
    return rows, labels
