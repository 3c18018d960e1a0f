"""
Five classifiers, ten handwritten digits: how often is each right about each digit when the scan is bad?

Each classifier learns from 300 images of scikit-learn's digits and then reads the others with noise on every pixel; to
check a reading takes a person. A pair that is nearly always right is settled by few checks, and one that is right half
of the time needs many. equipoise spreads 20,000 checks over the 50 pairs so that all accuracies are known about equally
well. Each image is scanned ten times, and the scans come in random order.
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
rng = np.random.default_rng(1)
order = rng.permutation(np.tile(np.arange(len(test)), 10))
scans, truth = rng.normal(test[order], 1.0), truth[order]

checks = {}
for name, model in MODELS.items():
    correct = model.fit(train, learnt).predict(scans) == truth
    checks |= {(name, digit): correct[truth == digit] for digit in range(10)}
results = {
    strategy: eq.estimate(checks, budget=20_000, support="binary", strategy=strategy)
    for strategy in ("uniform", "auto")
}
result = results["auto"]
widest = {strategy: 2 * max(each.intervals().half_widths) for strategy, each in results.items()}
print(result)
points = {strategy: f"{100 * width:.0f} points" for strategy, width in widest.items()}
print(f"The widest interval: {points['auto']} instead of {points['uniform']}.")

rows = [
    {"model": name, "digit": str(digit), "accuracy": result.means[name, digit], "checks": result.counts[name, digit],
     "label": f"{result.means[name, digit]:.0%}"}
    for name, digit in checks
]  # fmt: skip
base = alt.Chart(alt.Data(values=rows)).encode(
    x=alt.X("digit:N", title=None, axis=alt.Axis(orient="top", labelAngle=0, labelFontSize=18, labelColor=picture.INK)),
    y=alt.Y("model:N", sort=list(MODELS), title=None, axis=picture.names(MODELS)),
)
bubbles = base.mark_circle(opacity=0.9).encode(
    size=alt.Size("checks:Q", scale=alt.Scale(domain=[0, 800], range=[0, 1700]), legend=None),
    color=alt.condition("datum.accuracy < 0.7", alt.value(picture.ORANGE), alt.value(picture.BLUE)),
)
labels = base.mark_text(fontSize=14, dy=35, color=picture.SOFT).encode(text="label:N")
picture.save(
    (bubbles + labels).properties(width=480, height=440),
    "digits.svg",
    "The harder to predict, the more checks",
    f"20,000 checks of 50 accuracies: no interval is wider than {points['auto']}, instead of {points['uniform']} "
    "with as many checks of each\nArea: checks. Orange: accuracy below 70%",
)
