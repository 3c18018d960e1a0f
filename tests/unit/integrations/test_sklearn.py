"""Accuracies by class of classifiers that count the rows they predict."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import install_hint
from equipoise.integrations.sklearn import per_class_accuracy

RNG = np.random.default_rng(1)
LABELS = np.array(["cat", "dog", "owl"])[RNG.integers(0, 3, 900)]
LABELS[:3] = "yak"
# The first column is the label, or another one for a share of the rows that depends on the class.
NAMES = np.unique(LABELS)
RIGHT = RNG.random(900) < np.select([LABELS == "cat", LABELS == "dog"], [0.95, 0.6], 0.8)
CODES = np.searchsorted(NAMES, LABELS)
TABLE = np.column_stack([np.where(RIGHT, CODES, (CODES + 1) % 4), np.arange(900)]).astype(float)
TRUTH = {name: RIGHT[name == LABELS].mean() for name in NAMES.tolist()}


class Classifier:
    """Predicts what the first column says; keeps the rows it was asked for, by the second column."""

    def __init__(self, names: Any = NAMES) -> None:
        self.rows: list[int] = []
        self.calls = 0
        self._names = np.asarray(names)

    def predict(self, X: Any) -> Any:
        if sparse.issparse(X):
            X = X.toarray()
        X = np.asarray(X)
        self.calls += 1
        self.rows += X[:, 1].astype(int).tolist()
        return self._names[X[:, 0].astype(int)]


@pytest.mark.parametrize(
    "rows",
    [
        TABLE,
        TABLE.tolist(),
        pd.DataFrame(TABLE, columns=["a", "b"], index=np.arange(900)[::-1]),
        pl.DataFrame(TABLE, schema=["a", "b"]),
        sparse.csr_matrix(TABLE),
        sparse.coo_array(TABLE),
    ],
    ids=["array", "list", "pandas", "polars", "csr", "coo"],
)
def test_a_precision_is_reached_with_some_of_the_rows(rows: Any) -> None:
    classifier = Classifier()
    result = per_class_accuracy(classifier, rows, LABELS, precision=0.08, seed=1)
    assert result.reached
    assert len(classifier.rows) == len(set(classifier.rows)) == result.samples < 700
    assert classifier.calls < 40
    for name, (low, high) in result.intervals().items():
        assert low <= TRUTH[name] <= high
    # Three rows are soon used up, and then their accuracy is known.
    assert result.counts["yak"] == 3
    assert result.means["yak"] == TRUTH["yak"]
    assert result.intervals()["yak"].low == result.intervals()["yak"].high


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (LABELS, NAMES),
        (LABELS.astype(object), NAMES.astype(object)),
        (pd.Series(LABELS, index=np.arange(900) + 5).astype("category"), NAMES),
        (CODES, [0, 1, 2, 3]),
        (CODES[:, None].tolist(), [0.0, 1.0, 2.0, 3.0]),
    ],
    ids=["texts", "objects", "categories", "numbers", "column"],
)
def test_without_a_limit_every_row_is_predicted_and_the_accuracy_exact(labels: Any, names: Any) -> None:
    classifier = Classifier(names)
    result = per_class_accuracy(classifier, TABLE, labels, seed=1)
    assert sorted(classifier.rows) == list(range(900))
    assert result.means.array == pytest.approx(list(TRUTH.values()))
    assert (result.intervals().half_widths == 0).all()


def test_a_budget_is_the_number_of_rows() -> None:
    classifier = Classifier()
    result = per_class_accuracy(classifier, TABLE, LABELS, budget=200, batch=50, seed=1)
    assert len(set(classifier.rows)) == result.samples == 200
    assert classifier.calls == 4
    assert list(result.arms) == ["cat", "dog", "owl", "yak"]
    assert result.counts["dog"] > result.counts["cat"]
    again = per_class_accuracy(Classifier(), TABLE, LABELS, budget=200, batch=50, seed=1)
    assert dict(again.counts) == dict(result.counts)


def test_a_budget_may_be_as_small_as_all_rows() -> None:
    some = [np.flatnonzero(name == LABELS)[0] for name in NAMES]
    result = per_class_accuracy(Classifier(), TABLE[some], LABELS[some], budget=4)
    assert dict(result.counts) == dict.fromkeys(NAMES.tolist(), 1)
    assert (result.intervals().half_widths == 0).all()
    with pytest.raises(ValueError, match="budget must be at least 4, got 3: auto starts with 2 samples of each arm"):
        per_class_accuracy(Classifier(), TABLE[some], LABELS[some], budget=3)


def test_rows_of_few_classes_may_be_predicted_as_any_other() -> None:
    """In a batch of one row, or in all, no prediction need be a class of these rows."""
    some = np.flatnonzero(LABELS == "dog")
    result = per_class_accuracy(Classifier(), TABLE[some], LABELS[some], batch=1, budget=60, seed=1)
    assert 0 < result.means["dog"] < 1
    wrong = [i for i in some if not RIGHT[i]]
    assert per_class_accuracy(Classifier(), TABLE[wrong], LABELS[wrong]).means["dog"] == 0


def test_a_store_continues_with_the_same_rows_and_parameters(tmp_path: Path) -> None:
    first, second = Classifier(), Classifier()
    given: dict[str, Any] = {"store": tmp_path / "study.db", "seed": 1}
    per_class_accuracy(first, TABLE, LABELS, budget=100, **given)
    result = per_class_accuracy(second, TABLE, LABELS, budget=150, **given)
    assert result.samples == len(set(first.rows + second.rows)) == 150
    for estimator, rows, part in ((Classifier(), TABLE + 0.1, "rows"), (GaussianNB(), TABLE, "estimator")):
        with pytest.raises(ValueError, match=rf"^{part} must be .* to continue the study in the store"):
            per_class_accuracy(estimator, rows, LABELS, budget=200, **given)


def distance(a: Any, b: Any) -> float:
    return float(np.abs(a - b).sum())


def transformed(**parameters: Any) -> Any:
    return make_pipeline(FunctionTransformer(lambda X: X), LogisticRegression(**parameters))


def priors(middle: float) -> Any:
    return GaussianNB(priors=np.array([0.25] * 2_000 + [middle] + [0.25] * 2_000))


def scaled(middle: float) -> Any:
    return FunctionTransformer(np.log1p, kw_args={"where": [1.0] * 500 + [middle] + [1.0] * 500})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (transformed(C=1.0), transformed(C=1e-6)),
        (KNeighborsClassifier(1, metric=distance), KNeighborsClassifier(55, metric=distance)),
        (KNeighborsClassifier(metric=distance), KNeighborsClassifier(metric=transformed)),
        (priors(0.25), priors(0.5)),
        (scaled(1.0), scaled(2.0)),
        (make_pipeline(scaled(1.0), GaussianNB()), make_pipeline(scaled(2.0), GaussianNB())),
    ],
)
def test_a_store_is_not_continued_with_other_parameters(one: Any, other: Any, tmp_path: Path) -> None:
    def run(estimator: Any, budget: int) -> Any:
        estimator.predict = Classifier().predict
        return per_class_accuracy(estimator, TABLE, LABELS, budget=budget, store=tmp_path / "study.db", seed=1)

    assert run(one, 50).samples == 50
    assert run(clone(one), 60).samples == 60
    with pytest.raises(ValueError, match=r"estimator must be .* to continue the study in the store"):
        run(other, 70)


def test_a_prediction_that_fails_leaves_what_was_predicted(tmp_path: Path) -> None:
    class Failing(Classifier):
        def predict(self, X: Any) -> Any:
            if self.calls:
                raise OSError("no power")
            return super().predict(X)

    with pytest.raises(
        EquipoiseError, match=r"estimator\.predict failed: OSError: no power; the `study` attribute"
    ) as e:
        per_class_accuracy(Failing(), TABLE, LABELS, budget=100, seed=1)
    assert e.value.study.result().samples == 16
    assert isinstance(e.value.__cause__, OSError)


def test_predictions_of_another_number_leave_what_was_predicted() -> None:
    class Short(Classifier):
        def predict(self, X: Any) -> Any:
            return super().predict(X)[: None if self.calls == 1 else 3]

    with pytest.raises(EquipoiseError, match=r"one class for each of .* rows, got an array of shape \(3,\); the") as e:
        per_class_accuracy(Short(), TABLE, LABELS, budget=100, seed=1)
    assert e.value.study.result().samples == 16


class Fitted(Classifier):
    """A classifier that says which classes it was fitted to."""

    @property
    def classes_(self) -> Any:
        return self._names


class Wrong:
    def predict(self, X: Any) -> Any:
        return np.zeros((len(X), 2))


@pytest.mark.parametrize(
    ("estimator", "rows", "labels", "message"),
    [
        (object(), TABLE, LABELS, "estimator must have a method `predict`, got <object"),
        (Classifier(), TABLE, RNG.random(900), "y must be one class for each row, got a target that is continuous"),
        (
            Classifier(),
            TABLE,
            np.eye(3)[CODES % 3],
            "y must be one class for each row, got a target that is multilabel",
        ),
        (Classifier(), TABLE, LABELS[:800], "inconsistent numbers of samples"),
        (Classifier([7, 8, 9, 10]), TABLE, LABELS, "estimator must predict classes of y such as 'cat', got "),
        (Classifier(), TABLE, CODES, "estimator must predict classes of y such as 0, got '"),
        (Fitted([7, 8]), TABLE, CODES, r"estimator must know classes of y such as 0, got \[7, 8\]"),
        (Classifier(), TABLE[:0], LABELS[:0], "y must have at least one label, got none"),
        (Classifier(), TABLE[:3], ["cat", None, "dog"], "y must have a label for every row, got None for row 1"),
        (Classifier(), TABLE[:3], ["cat", "dog", np.nan], "y must have a label for every row, got nan for row 2"),
        (Classifier(), TABLE[:2], pd.Series(["cat", pd.NA], dtype="string"), "for every row, got <NA> for row 1"),
        (Wrong(), TABLE, LABELS, r"must return one class for each of 16 rows, got an array of shape \(16, 2\)"),
    ],
)
def test_what_cannot_be_used_is_refused(estimator: Any, rows: Any, labels: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError, EquipoiseError), match=message):
        per_class_accuracy(estimator, rows, labels, budget=100)


def test_a_misspelt_argument_is_suggested() -> None:
    with pytest.raises(TypeError, match="has no argument 'precison'; did you mean 'precision'"):
        per_class_accuracy(Classifier(), TABLE, LABELS, precison=0.1)  # type: ignore[call-arg]


def test_without_scikit_learn_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    hint = re.escape(install_hint("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "equipoise.integrations.sklearn")
    with pytest.raises(ModuleNotFoundError, match=f"needs scikit-learn, which is not installed; {hint}"):
        importlib.import_module("equipoise.integrations.sklearn")
