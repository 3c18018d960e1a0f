"""
The price of an Asian option from 20,000 simulated paths: stratified by equipoise, stratified evenly, and by vegas.

The payoff depends mostly on one direction: whether the price rises early. equipoise samples 30 strata along it,
narrower towards the top, and sends most paths where payoffs vary most; an even split sends as many paths into each of
the same strata. `vegas` is given the same direction as its first axis, and adapts a grid. Sixty repetitions of each
show how far the prices scatter around a reference, which two million paths give: the option on the geometric mean,
whose price is known, removes most of their noise.
"""

import altair as alt
import numpy as np
import picture
import vegas
from scipy.special import ndtr, ndtri

import equipoise as eq

STEPS, PATHS, REPEATS = 16, 20_000, 60
RATE, SIGMA, SPOT, STRIKE = 0.05, 0.3, 100.0, 100.0
# The edges of the strata, as quantiles.
EDGES = np.array([0, *np.linspace(0.5, 0.96, 24), 0.97, 0.98, 0.99, 0.995, 0.998, 1])
SHARES = np.diff(EDGES)
early = np.arange(STEPS, 0.0, -1)
AXES = np.linalg.qr(np.column_stack([early, np.eye(STEPS)[:, 1:]]))[0]  # the first column is the direction
AXES *= np.sign(AXES[0, 0])


def logs(normals: np.ndarray) -> np.ndarray:
    """Return the logarithms of the 16 prices of a path, for each row of 16 normal numbers along the axes."""
    steps = (RATE - SIGMA**2 / 2) / STEPS + SIGMA / np.sqrt(STEPS) * (normals @ AXES.T)
    return np.log(SPOT) + np.cumsum(steps, axis=1)


def call(mean: np.ndarray) -> np.ndarray:
    return np.exp(-RATE) * np.maximum(mean - STRIKE, 0)


def payoff(normals: np.ndarray) -> np.ndarray:
    """Return the discounted payoff of a call on the mean price."""
    return call(np.exp(logs(normals)).mean(axis=1))


def stratified(seed: int, **how: object) -> eq.Result:
    rng = np.random.default_rng((7, seed))

    def paths(stratum: int, size: int) -> np.ndarray:
        normals = rng.normal(size=(size, STEPS))
        normals[:, 0] = ndtri(EDGES[stratum] + SHARES[stratum] * rng.random(size))
        return payoff(normals)

    return eq.estimate(paths, arms=len(SHARES), budget=PATHS, **how)


def by_vegas(seed: int) -> float:
    integrand = vegas.batchintegrand(lambda u: payoff(ndtri(np.clip(u, 1e-12, 1 - 1e-12))))
    draw = np.random.default_rng((9, seed)).random
    integrator = vegas.Integrator([[0, 1]] * STEPS, ran_array_generator=draw)
    return float(integrator(integrand, nitn=10, neval=PATHS // 10).mean)


def plain(seed: int) -> float:
    return float(payoff(np.random.default_rng((8, seed)).normal(size=(PATHS, STEPS))).mean())


def reference(batches: int = 20, size: int = 100_000) -> tuple[float, float]:
    """Return the price, and its standard error, from many paths and the known price of the geometric mean's option."""
    times = np.arange(1, STEPS + 1) / STEPS
    drift = np.log(SPOT) + (RATE - SIGMA**2 / 2) * times.mean()
    sd = SIGMA * np.sqrt(np.minimum.outer(times, times).mean())
    d = (drift - np.log(STRIKE)) / sd
    known = np.exp(-RATE) * (np.exp(drift + sd**2 / 2) * ndtr(d + sd) - STRIKE * ndtr(d))
    rng, means = np.random.default_rng(10), []
    for _ in range(batches):
        paths = logs(rng.normal(size=(size, STEPS)))
        means.append((call(np.exp(paths).mean(axis=1)) - call(np.exp(paths.mean(axis=1)))).mean())
    return float(known + np.mean(means)), float(np.std(means, ddof=1) / np.sqrt(batches))


results = {
    "even split": [stratified(seed, strategy="uniform") for seed in range(REPEATS)],
    "equipoise": [stratified(seed, objective=eq.Stratified(SHARES)) for seed in range(REPEATS)],
}
prices = {
    "plain Monte Carlo": [plain(seed) for seed in range(REPEATS)],
    "vegas": [by_vegas(seed) for seed in range(REPEATS)],
} | {name: [float(SHARES @ result.means.array) for result in each] for name, each in results.items()}
spread = {name: float(np.std(values, ddof=1)) for name, values in prices.items()}
price, error = reference()
print(f"Reference price    {price:8.4f}, standard error {error:.4f}")
for name, values in prices.items():
    print(f"{name:18}{np.mean(values):8.4f}, standard deviation {spread[name]:.4f} over {REPEATS} repetitions")
print(f"The standard error of each standard deviation is {1 / np.sqrt(2 * (REPEATS - 1)):.0%} of it.")
print(f"Stated by equipoise: standard error {results['equipoise'][0].combine().error:.4f}.")
for other in ("plain Monte Carlo", "even split"):
    print(f"A price scatters by {spread['equipoise']:.4f} instead of {spread[other]:.4f} ({other}).")

colour = alt.Scale(domain=list(prices), range=[picture.FAINT, picture.ORANGE, picture.GREEN, picture.BLUE])
rows = [{"method": name, "price": float(price)} for name, values in prices.items() for price in values]
ticks = alt.Chart(alt.Data(values=rows), width=420, height=300).mark_tick(thickness=2, size=52, opacity=0.6).encode(
    x=alt.X("price:Q", scale=alt.Scale(zero=False), title="price of the option", axis=alt.Axis(tickCount=4)),
    y=alt.Y("method:N", sort=list(prices), title=None, axis=picture.names(prices)),
    color=alt.Color("method:N", legend=None, scale=colour),
)  # fmt: skip
true = alt.Chart(alt.Data(values=[{"price": price}])).mark_rule(strokeWidth=2, color=picture.SOFT).encode(x="price:Q")
picture.save(
    true + ticks,
    "options.svg",
    "20,000 paths, sent where the payoff varies",
    f"{REPEATS} prices by each method. Standard deviations, from the top: "
    f"{', '.join(f'{value:.4f}' for value in spread.values())}\n"
    "Even split: as many paths for each of equipoise's strata\n"
    f"Line: the reference price, {price:.4f} (standard error {error:.4f})",
)
