"""What benchmarks/inference.py makes of its measurements: ratios with errors, coverage, and the tables of the page."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.inference import Studied, covered, filled, judged
from benchmarks.inference_tables import Remarked, Row, read, rows, tables


def test_rows_have_names_of_their_own() -> None:
    found = rows()
    assert len({row.name for row in found}) == len(found)
    assert Row("variance", "binary 0.1", 100, 30, "b-as", "sum", True) in found
    paid = Row("", "Gaussian", 4, 30, costs=True)
    assert paid.budget == 30 * (1 + 3 + 1 + 3)


def test_what_is_judged() -> None:
    """Reported are squared errors of 1.5 s²/T where the true ones are 1.2 s²/T, and a bias of 2 for 1."""
    rng = np.random.default_rng(1)
    losses = rng.uniform(1, 2, (50, 4))
    studied = Studied(np.full((50, 4), 1.5), np.full((50, 4), -2.0), losses, np.zeros((50, 4)))
    true = rng.uniform(1, 2, 1000)
    noise = rng.normal(0, 0.1, 1000)
    found = judged(rows()[0], [np.array([1.2 * true + noise, true, np.full(1000, -1.0)])], [studied], 3.0)
    assert found.reported == pytest.approx(1.5)
    assert found.inflation == pytest.approx(1.2, abs=5 * 0.1 / 1.5 / math.sqrt(1000))
    assert found.ratio == found.inflation / found.reported
    assert found.ratio_error == pytest.approx(0.1 / 1.5 / math.sqrt(1000) / 1.5, rel=0.1)
    assert (found.bias, found.reported_bias, found.studies) == (-1, -2, 50)


def test_what_covers() -> None:
    """400 combined means of four strata: off by -0.5 with a standard error of 1/2, unless that is taken out."""
    rng = np.random.default_rng(2)
    off = rng.normal(-0.5, 1, (400, 4))
    studied = Studied(np.ones((400, 4)), np.full((400, 4), -0.5), np.ones((400, 4)), off)
    found = covered(Row("coverage", "Gaussian", 4, 30), [studied], 1.0)
    assert found.coverage == pytest.approx(0.95, abs=5 * 0.011)
    assert found.plain == pytest.approx(0.83, abs=5 * 0.019)
    assert found.bias == pytest.approx(-0.5, abs=5 * 0.025)
    assert found.corrected == pytest.approx(0, abs=5 * found.bias_error)
    assert found.spread == pytest.approx(1, abs=5 / math.sqrt(800))


def test_the_page_has_a_place_for_each_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    row, bias, strata = Row("variance", "exponential", 2, 30), Row("bias", "exponential", 10, 30), rows()[-12]
    losses = rng.uniform(1, 2, (50, 2))
    studied = Studied(np.full((50, 2), 1.5), rng.normal(-2, 0.1, (50, 2)), losses, rng.normal(size=(50, 2)))
    truth = [rng.uniform(1, 2, (3, 100))]
    known: dict[str, list[Any]] = {
        "found": [judged(row, truth, [studied], 1.0), judged(bias, truth, [studied], 1.0)],
        "covered": [covered(strata, [studied], 1.0)],
        "remarked": [Remarked(Row("remark", "Gaussian", 2, 100), 10, 0.0, 0.0)],
    }
    file = tmp_path / "found.txt"
    file.write_text("a table\n" + json.dumps({name: [asdict(each) for each in some] for name, some in known.items()}))
    assert read([file]) == known
    # Of a row that was measured again, the last measurement counts, in its place.
    again = replace(known["found"][0], ratio=1.5)
    later = tmp_path / "again.txt"
    later.write_text(json.dumps({"found": [asdict(again)]}) + "\nthe end\n")
    assert read([file, later]) == known | {"found": [again, known["found"][1]]}
    page = "".join(filled(tables(known)).values())
    assert f"| exponential | auto, max | {known['found'][0].ratio:.3f} |" in page
    assert "| 2 Gaussian | 10 | 0.0% | 0.0% |" in page
