"""
Reproduce the paper's experiments, and judge its claims by the results.

`design` says what is simulated, `measure` simulates it and keeps each finished simulation in a folder, `tables` turns
the results into rows of numbers, `claims` judges what the paper says by those rows alone, `figures` draws them, and
`page` writes all of it. `reproduce` does the whole of it.

References
----------
.. [1] A. Carpentier, A. Lazaric, M. Ghavamzadeh, R. Munos, P. Auer, A. Antos, Upper-Confidence-Bound Algorithms for
   Active Learning in Multi-Armed Bandits, Remark 3 and Sections 4.3, 5 and 6.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise import chart
from equipoise.base.tables import json_ready
from equipoise.lab.paper import claims, figures, measure, page, tables
from equipoise.lab.paper.claims import Claim
from equipoise.lab.paper.design import PAPER_RUNS, PaperDesign
from equipoise.lab.paper.measure import Progress
from equipoise.lab.paper.tables import Tables

__all__ = ["PAPER_RUNS", "Claim", "PaperDesign", "Reproduction", "reproduce"]


@dataclass(frozen=True)
class Reproduction:
    """
    The paper's experiments, reproduced.

    Attributes
    ----------
    design
        What was simulated.
    tables
        The results as rows of plain numbers, by name.
    claims
        The paper's claims with their verdicts.
    files
        What was written, the page first.
    """

    design: PaperDesign
    tables: Tables
    claims: list[Claim]
    files: list[Path]

    def to_dict(self) -> dict[str, Any]:
        """Return claims, tables and the paths of the files, ready for JSON."""
        return {
            "claims": [claim.to_dict() for claim in self.claims],
            "tables": json_ready(self.tables),
            "files": [str(path) for path in self.files],
        }


def reproduce(folder: Path, design: PaperDesign | None = None, progress: Progress | None = None) -> Reproduction:
    """
    Simulate the paper's experiments, judge its claims, and write figures, tables and a page.

    Parameters
    ----------
    folder
        Where everything goes; finished simulations in `folder/simulations` are not simulated again.
    design
        What to simulate; by default the paper's experiments with its number of runs.
    progress
        Called with the work done so far, all the work, and the name of the simulation at work.
    """
    design = PaperDesign() if design is None else design
    with ThreadPoolExecutor(1) as beside:
        beside.submit(chart.start)
        results = measure.measure_all(design, folder / "simulations", progress)
    made = tables.build(design, results)
    judged = claims.judge(made)
    files = page.write(folder, design, made, judged, figures.draw(made))
    return Reproduction(design, made, judged, files)
