"""Contrasts as users name them."""

from __future__ import annotations

import pickle

import pytest

import equipoise as eq
from equipoise.store.plain import dumps, loads

ARMS = ["control", "a", "b"]


def test_weights() -> None:
    assert eq.Contrasts(0.1).weights(ARMS).tolist() == [[1, -1, 0], [1, 0, -1], [0, 1, -1]]
    assert eq.Contrasts(0.1, to="a").weights(ARMS).tolist() == [[1, -1, 0], [0, -1, 1]]
    of = eq.Contrasts(0.1, of=[{"a": 1, "b": -0.5, "control": -0.5}, {"b": 1}])
    assert of.weights(ARMS).tolist() == [[-0.5, 1, -0.5], [0, 0, 1]]
    assert (of.noun, of.words) == ("contrast", "contrast")
    assert eq.Contrasts(0.1, to="control").words == "difference to control"


@pytest.mark.parametrize(
    "given", [eq.Contrasts(0.25), eq.Contrasts(1, to=("x", 1)), eq.Contrasts(0.5, of=[{"a": 1, 2: -1}])]
)
def test_they_come_back_from_a_store_and_a_pickle(given: eq.Contrasts) -> None:
    assert loads(dumps(given)) == given == pickle.loads(pickle.dumps(given))


def test_as_plain_data() -> None:
    assert eq.Contrasts(0.25, to="a").to_dict() == {"contrasts": 0.25, "to": "a"}
    assert eq.Contrasts(1, of=[{"a": 1}]).to_dict() == {"contrasts": 1.0, "of": [{"a": 1.0}]}


def test_what_is_refused() -> None:
    for wrong, said in [
        (lambda: eq.Contrasts(0), "half_width must be a positive number, got 0"),
        (lambda: eq.Contrasts(1, to="a", of=[{"a": 1}]), "Contrasts takes to or of, not both"),
        (lambda: eq.Contrasts(1, of=[]), "of must have at least one contrast, got none"),
        (lambda: eq.Contrasts(1, of=[{"a": 0}]), "must be finite and not all zero"),
        (lambda: eq.Contrasts(1, of=["ab"]), "of must have mappings from arms to weights"),  # type: ignore[list-item]
        (lambda: eq.Contrasts(1, to="c").weights(ARMS), "a contrast must be of arms of the study, got 'c'"),
        (lambda: eq.Contrasts(1).weights(["a"]), "contrasts need at least 2 arms, got 1"),
        (lambda: eq.Contrasts(1).weights(range(1000)), "contrasts times arms must be at most"),
    ]:
        with pytest.raises((ValueError, TypeError), match=said):
            wrong()  # type: ignore[no-untyped-call]
