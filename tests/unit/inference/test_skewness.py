"""The skewness of samples beside that of their law, in simulations."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.inference import skewness


@pytest.mark.parametrize("shape", [0.5, 1, 4])
@pytest.mark.parametrize("n", [20, 80, 320])
def test_samples_of_gamma_laws(shape: float, n: int) -> None:
    """By 3,000 times n samples: mean and standard deviation within 25%, the correlation with s² within 0.15."""
    x = np.random.default_rng(1).gamma(shape, size=(3000, n))
    x -= x.mean(axis=1, keepdims=True)
    variances = (x**2).mean(axis=1)
    seen = (x**3).mean(axis=1) / variances**1.5
    law = 2 / np.sqrt(shape)
    assert skewness.shown(law, n) == pytest.approx(seen.mean(), rel=0.25)
    assert np.sqrt(skewness.variance(law, n)) == pytest.approx(seen.std(), rel=0.25)
    assert skewness.correlation(law) == pytest.approx(np.corrcoef(seen, np.log(variances))[0, 1], abs=0.15)


def test_symmetric_laws() -> None:
    """Their variance is 6/n, and s² has nothing to do with it."""
    assert skewness.shown(0, 30) == skewness.unfolded(0, 30) == skewness.correlation(0) == 0
    assert skewness.variance(0, 600) == pytest.approx(6 / 600, rel=0.03)


def test_what_is_shown_can_be_unfolded() -> None:
    law, n = np.array([-2.0, 0.5, 1.0, 2.0]), np.array([100, 20, 50, 400])
    assert skewness.unfolded(skewness.shown(law, n), n) == pytest.approx(law)
    # As much as ten samples can show may be of any law that is skewed enough.
    assert skewness.unfolded(2.6, 10) == 5.2
