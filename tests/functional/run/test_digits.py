"""The accuracy of classifiers for each class of scikit-learn's digits, to three percent, from part of the pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import NormalDist

import pytest

from equipoise.cli import main

TRAINED = 300
MODULE = """
from sklearn.datasets import load_digits
from sklearn.{module} import {name}

pictures, labels = load_digits(return_X_y=True)
model = {name}({options}).fit(pictures[:{trained}], labels[:{trained}])
pools = {{str(d): pictures[{trained}:][labels[{trained}:] == d] for d in range(10)}}

right = {{d: model.predict(pool) == int(d) for d, pool in pools.items()}}  # one at a time, some take 5 ms

def correct(arm, item):
    return right[arm][item]
"""


# Every classifier whose saving was looked at on these pools, and not the best of them.
@pytest.mark.parametrize(
    ("module", "name", "options"),
    [
        ("naive_bayes", "GaussianNB", "var_smoothing=1e-2"),
        ("linear_model", "LogisticRegression", "max_iter=2000"),
        ("neighbors", "KNeighborsClassifier", "3"),
        ("svm", "SVC", ""),
    ],
)
def test_accuracy_of_each_class_to_three_percent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: str,
    name: str,
    options: str,
) -> None:
    """Each of the ten means is within five standard errors of the accuracy on all pictures of its class."""
    here = f"digits_{name.lower()}"
    (tmp_path / f"{here}.py").write_text(MODULE.format(module=module, name=name, options=options, trained=TRAINED))
    monkeypatch.syspath_prepend(str(tmp_path))
    answers = __import__(here).right
    sizes = "".join(f"{digit} = {len(right)}\n" for digit, right in answers.items())
    (tmp_path / "digits.toml").write_text(
        f'precision = 0.03\nsupport = "binary"\nseed = 1\nfunction = "{here}:correct"\n[populations]\n{sizes}'
    )
    monkeypatch.setattr(sys, "argv", ["equipoise", "run", str(tmp_path / "digits.toml"), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    known = json.loads(capsys.readouterr().out)
    assert known["precision_reached"] is True
    z = NormalDist().inv_cdf(1 - 0.05 / 20)
    for digit, right in answers.items():
        low, high = known["intervals"][digit]
        assert (high - low) / 2 <= 0.03
        assert abs(known["means"][digit] - right.mean()) <= 5 * max(known["standard_errors"][digit], 0.03 / z)
    with capsys.disabled():
        print(f"\n{name}: {known['samples']:,} of {sum(map(len, answers.values())):,} pictures")
