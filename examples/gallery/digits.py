"""
Five classifiers, ten handwritten digits: which one reads which digit how well when the scan is bad?

Each classifier learns from 300 images of scikit-learn's digits and then reads the others with noise on every pixel; to
check a reading takes a person. A pair that is nearly always right is settled by few checks, and one that is right half
of the time needs many. equipoise spreads 20,000 checks over the 50 pairs so that all accuracies are known equally well.
"""

import altair as alt
import numpy as np
import picture
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import equipoise as eq

MODELS = {
    "support vectors": SVC(),
    "neighbours": KNeighborsClassifier(3),
    "logistic": LogisticRegression(max_iter=2000),
    "discriminant": LinearDiscriminantAnalysis(),
    "tree": DecisionTreeClassifier(random_state=0),
}
images, labels = load_digits(return_X_y=True)
train, test, learnt, truth = train_test_split(images, labels, train_size=300, random_state=0, stratify=labels)
scans = np.random.default_rng(1).normal(np.tile(test, (10, 1)), 1.0)
truth = np.tile(truth, 10)

checks = {}
for name, model in MODELS.items():
    correct = model.fit(train, learnt).predict(scans) == truth
    checks |= {(name, digit): correct[truth == digit] for digit in range(10)}
results = {
    strategy: eq.estimate(checks, budget=20_000, support="binary", strategy=strategy)
    for strategy in ("uniform", "auto")
}
result = results["auto"]
widest = {strategy: max(each.intervals().half_widths) for strategy, each in results.items()}
print(result)
print(f"The least known accuracy: ±{widest['auto']:.1%} instead of ±{widest['uniform']:.1%}.")

rows = [
    {"model": name, "digit": str(digit), "accuracy": result.means[name, digit], "checks": result.counts[name, digit],
     "label": f"{result.means[name, digit]:.0%}"}
    for name, digit in checks
]  # fmt: skip
base = alt.Chart(alt.Data(values=rows)).encode(
    x=alt.X("digit:N", title=None, axis=alt.Axis(orient="top", labelAngle=0, labelFontSize=18, labelColor=picture.INK)),
    y=alt.Y("model:N", sort=list(MODELS), title=None, axis=picture.NAMES),
)
bubbles = base.mark_circle(opacity=0.9).encode(
    size=alt.Size("checks:Q", scale=alt.Scale(domain=[0, 800], range=[0, 1700]), legend=None),
    color=alt.condition("datum.accuracy < 0.75", alt.value(picture.ORANGE), alt.value(picture.BLUE)),
)
labels = base.mark_text(fontSize=14, dy=35, color=picture.SOFT).encode(text="label:N")
picture.save(
    (bubbles + labels).properties(width=480, height=440),
    "digits.svg",
    "The less predictable a reader, the more of its readings are checked",
    f"20,000 checks (area) of 50 pairs: every accuracy to ±{100 * widest['auto']:.1f} points instead of "
    f"±{100 * widest['uniform']:.1f}\nOrange: right less than three times in four",
)
