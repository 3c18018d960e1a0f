"""What a study knows about its arms."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas
    import polars

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# A table in a terminal or a notebook shows this many arms, the worst known of them.
_SHOWN = 20


class ByArm(Mapping[Hashable, float]):
    """Numbers by arm: a mapping from the arms' names, with the numbers in the arms' order as `array`."""

    def __init__(self, arms: Sequence[Hashable], array: Any, index: dict[Hashable, int] | None) -> None:
        self._arms, self._index = arms, index
        self.array = array

    def __getitem__(self, arm: Hashable) -> float:
        return self.array[self.position(arm)].item()  # type: ignore[no-any-return]

    def position(self, arm: Hashable) -> int:
        """Where the arm stands; KeyError if there is none of that name."""
        if self._index is not None:
            return self._index[arm]
        try:
            return self._arms.index(arm)
        except ValueError:
            raise KeyError(arm) from None

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._arms)

    def __len__(self) -> int:
        return len(self._arms)

    def __repr__(self) -> str:
        return repr(dict(self)) if len(self) <= _SHOWN else f"<{len(self):,} numbers by arm>"


class Difference(NamedTuple):
    """The difference of two arms' means, and its standard error."""

    value: float
    error: float


class Result:
    """
    What a study knows: means by arm, and how well they are known.

    All numbers are estimates from the samples that are in. A variance needs two samples, a mean needs one; what is not
    known is NaN, and an arm of which too little is known is never called well known.

    Attributes
    ----------
    counts, means, variances, standard_errors, losses
        By arm: samples in; their mean; their unbiased variance s²; s/sqrt(count); and s²/count, the estimate of the
        expected squared error of the mean.
    loss
        The largest of the losses, that of the `worst` arm.
    oracle_loss
        What the best allocation of as many samples would have had, if the variances are those seen: sum of s² over
        samples.
    regret
        loss - oracle_loss.
    uniform_loss, uniform_samples
        What as many samples, spread evenly, would have had; and how many of them it would have taken to know the worst
        arm as well as here.
    """

    def __init__(
        self,
        arms: Sequence[Hashable],
        counts: Ints,
        means: Floats,
        m2s: Floats,
        strategy: str = "",
        index: dict[Hashable, int] | None = None,
    ) -> None:
        if index is None and not isinstance(arms, range):
            index = {arm: k for k, arm in enumerate(arms)}
        self.arms = arms
        self.strategy = strategy
        self._index = index
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = np.where(counts >= 2, m2s / (counts - 1), math.nan)
            losses = variances / counts
        self.counts = ByArm(arms, counts, index)
        self.means = ByArm(arms, np.where(counts >= 1, means, math.nan), index)
        self.variances = ByArm(arms, variances, index)
        self.losses = ByArm(arms, losses, index)
        self.standard_errors = ByArm(arms, np.sqrt(losses), index)

    @property
    def samples(self) -> int:
        """How many samples are in."""
        return int(self.counts.array.sum())

    @property
    def loss(self) -> float:
        # NaN if any arm's is: an arm of which nothing is known is not well known.
        return float(self.losses.array.max())

    @property
    def worst(self) -> Hashable:
        """The arm whose mean is known worst; the first with fewer than two samples, if there is one."""
        return self.arms[int(self.losses.array.argmax())]

    @property
    def oracle_loss(self) -> float:
        return float(self.variances.array.sum()) / self.samples if self.samples else math.nan

    @property
    def regret(self) -> float:
        return self.loss - self.oracle_loss

    @property
    def uniform_loss(self) -> float:
        return float(self.variances.array.max()) * len(self.arms) / self.samples if self.samples else math.nan

    @property
    def uniform_samples(self) -> float:
        largest = float(self.variances.array.max())
        return len(self.arms) * largest / self.loss if self.loss > 0 else math.nan

    def difference(self, a: Hashable, b: Hashable) -> Difference:
        """The mean of `a` less the mean of `b`, with its standard error."""
        i, j = (self._position(arm) for arm in (a, b))
        if i == j:
            return Difference(0.0, 0.0)
        losses = self.losses.array
        return Difference(float(self.means.array[i] - self.means.array[j]), math.sqrt(losses[i] + losses[j]))

    def differences(self, control: Hashable = None) -> dict[Any, Difference]:
        """
        All differences between two arms, with their standard errors.

        Parameters
        ----------
        control
            With an arm's name: every other arm less this one, by that arm. Without: every pair (a, b), a after b.
        """
        if control is not None:
            self._position(control)
            return {arm: self.difference(arm, control) for arm in self.arms if arm != control}
        return {(a, b): self.difference(a, b) for b, a in combinations(self.arms, 2)}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, by arm where there is one for each; what is not known is None."""
        by_arm = ("means", "counts", "variances", "standard_errors", "losses")
        alone = ("samples", "loss", "worst", "oracle_loss", "regret", "uniform_loss", "uniform_samples")
        known: dict[str, Any] = {"strategy": self.strategy}
        known |= {name: {arm: _plain(value) for arm, value in getattr(self, name).items()} for name in by_arm}
        known |= {name: _plain(getattr(self, name)) for name in alone}
        return known

    def to_json(self) -> str:
        """`to_dict` as a JSON object, where arms' names are texts."""
        texts = {
            name: {str(arm): number for arm, number in value.items()} if isinstance(value, dict) else value
            for name, value in self.to_dict().items()
        }
        return json.dumps(texts, default=str, ensure_ascii=False)

    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> pandas.DataFrame | polars.DataFrame:
        """A table with a row for each arm, as a pandas or a polars DataFrame."""
        if library not in ("pandas", "polars"):
            raise ValueError(f"library={library!r} will not do; it must be 'pandas' or 'polars'")
        columns: dict[str, Any] = {
            "arm": list(self.arms),
            "count": self.counts.array,
            "mean": self.means.array,
            "variance": self.variances.array,
            "standard_error": self.standard_errors.array,
            "loss": self.losses.array,
        }
        try:
            if library == "polars":
                import polars

                return polars.DataFrame(columns)
            import pandas

            return pandas.DataFrame(columns)
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"to_frame needs {library}, which is not installed: pip install {library}"
            ) from None

    def summary(self) -> str:
        """What the samples bought, in one or two sentences."""
        if math.isnan(self.loss):
            short = int((self.counts.array < 2).sum())
            return f"{self.samples:,} samples are in; {short:,} of {len(self.arms):,} arms have fewer than 2."
        text = (
            f"{self.samples:,} samples; the worst-known mean is that of {self.worst!r}, "
            f"with a standard error of {math.sqrt(self.loss):.3g}."
        )
        if self.loss > 0 and len(self.arms) > 1:
            text += f" Uniform sampling would have needed about {self.uniform_samples:,.0f} samples for this worst arm."
        return text

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(_pad(cell, w, i) for i, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows
        ]
        return "\n".join([*(line.rstrip() for line in lines), *self._more(), self.summary()])

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        cell = '<td style="text-align:{}">{}</td>'
        body = "".join(
            "<tr>" + "".join(cell.format("right" if i else "left", html.escape(c)) for i, c in enumerate(row)) + "</tr>"
            for row in rows
        )
        titles = "".join(f"<th>{title}</th>" for title in head)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in [*self._more(), self.summary()])
        return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _rows(self) -> list[list[str]]:
        """A title row, and a row for each arm that is shown."""
        rows = [["arm", "count", "mean", "std. error", "variance"]]
        for k in self._shown():
            numbers = (self.means.array[k], self.standard_errors.array[k], self.variances.array[k])
            rows.append(
                [
                    str(self.arms[k]),
                    f"{self.counts.array[k]:,}",
                    *("—" if math.isnan(x) else f"{x:.4g}" for x in numbers),
                ]
            )
        return rows

    def _shown(self) -> list[int]:
        arms = range(len(self.arms))
        if len(arms) <= _SHOWN:
            return list(arms)
        # The unknown first, then the largest losses.
        order = np.argsort(-np.nan_to_num(self.losses.array, nan=math.inf), kind="stable")
        return [int(k) for k in order[:_SHOWN]]

    def _more(self) -> list[str]:
        left_out = len(self.arms) - _SHOWN
        return [f"... and {left_out:,} arms that are known better"] if left_out > 0 else []

    def _position(self, arm: Hashable) -> int:
        try:
            return self.means.position(arm)
        except KeyError:
            raise ValueError(f"there is no arm {arm!r} in this result") from None


def _pad(text: str, width: int, column: int) -> str:
    return text.rjust(width) if column else text.ljust(width)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
