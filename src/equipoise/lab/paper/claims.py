"""The paper's claims, judged by the tables alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from equipoise import theory
from equipoise.base.tables import amount
from equipoise.lab.paper.design import ALPHA, ALPHAS, AUTO, EXPLORATIONS, PAIR, A, b_as, gafs_max
from equipoise.lab.paper.tables import Row, Tables, exponent, first_order, matching, with_error


@dataclass(frozen=True)
class Claim:
    """
    A claim of the paper and the verdict on it.

    Attributes
    ----------
    where, claim
        Where the paper says it, and what it says.
    rule
        How it is judged here.
    measured
        What was measured.
    holds, why
        Whether it holds and, if not, why not.
    """

    where: str
    claim: str
    rule: str
    measured: str
    holds: bool
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in ("where", "claim", "rule", "measured", "holds", "why")}


# A curve is called almost constant if its largest value is at most this many times its smallest.
FLAT = 1.25


def judge(made: Tables) -> list[Claim]:
    """Return the paper's claims, judged by the tables alone."""
    return [*_left_claims(made), *_right_claims(made), *_quiet_claims(made), *_lemma_claims(made), *_bound_claims(made)]


def _left_claims(made: Tables) -> list[Claim]:
    where = "Section 5.1, left figure"
    curves = {
        name: matching(made["left"], strategy=name) for name in dict.fromkeys(row["strategy"] for row in made["left"])
    }
    ch, b, gafs = curves["CH-AS"], curves[b_as(A)], curves[gafs_max(ALPHA)]
    rises = all(other["rescaled_regret"] > one["rescaled_regret"] for one, other in pairwise(ch))
    found = [
        Claim(
            where,
            "The rescaled regret of CH-AS increases with n.",
            "It is larger at every n than at the previous one.",
            f"{_at(ch[0])}, {_at(ch[-1])}",
            rises,
            "" if rises else "It falls somewhere on the grid.",
        )
    ]
    for name, curve, others in (
        ("B-AS", b, {f"A = {a:g}": curves[b_as(a)] for a in EXPLORATIONS if a != A}),
        ("GAFS-MAX", gafs, {f"α = {a:g}": curves[gafs_max(a)] for a in ALPHAS if a != ALPHA}),
    ):
        low, high = _extremes(curve)
        flat = high["rescaled_regret"] <= FLAT * low["rescaled_regret"]
        rest = "; ".join(f"{label}: a ratio of {_ratio(rows):.3g}" for label, rows in others.items())
        found.append(
            Claim(
                where,
                f"The rescaled regret of {name} is almost constant in n.",
                f"The largest is at most {FLAT} times the smallest.",
                f"from {_at(low)} to {_at(high)}, a ratio of {_ratio(curve):.3g} ({rest})",
                flat,
                "" if flat else _not_flat(low, high, b),
            )
        )
    distance = [(row["rescaled_regret"] - first_order(PAIR, A), row["rescaled_error"]) for row in b if row["n"] >= 100]
    closer = all(abs(y) < abs(x) + 5 * e for (x, _), (y, e) in pairwise(distance))
    level = closer and abs(distance[-1][0]) < 0.05 * first_order(PAIR, A)
    found.append(
        Claim(
            where,
            "B-AS shows no further dependence on log n.",
            "From n = 100 on it comes closer, at every n, to its limit 4A sqrt(Σ) (K - 1/λ_max), and within 5% of it.",
            f"{_at(b[-1])}; the limit is {first_order(PAIR, A):.4g}",
            level,
            "" if level else "It does not settle at the limit.",
        )
    )
    far = [
        (g, abs(g["rescaled_regret"] - row["rescaled_regret"]) / row["paper_error"])
        for g, row in zip(gafs, b, strict=True)
    ]
    apart = [g["n"] for g, sigmas in far if sigmas > 2]
    worst, sigmas = max(far, key=lambda each: each[1])
    same = matching(b, n=worst["n"])[0]
    found.append(
        Claim(
            where,
            "GAFS-MAX is very close to B-AS.",
            "At every n they differ by at most two standard errors of the paper's estimator.",
            f"GAFS-MAX has {_at(worst)}, B-AS {_at(same)}: {sigmas:.3g} of those standard errors apart",
            not apart,
            ""
            if not apart
            else f"They differ at n = {', '.join(f'{n:,}' for n in apart)}; elsewhere the paper's estimator could not "
            "tell them apart.",
        )
    )
    return found


def _not_flat(low: Row, high: Row, b: Sequence[Row]) -> str:
    """Explain why a curve is not flat, and whether the paper's estimator could have shown it."""
    texts = []
    if "GAFS" in high["strategy"]:
        texts.append(
            f"It peaks near n = {high['n']:,}, where arm {high['worst_arm']} is the worst: an arm whose sample "
            "variance is too small by chance gets too few pulls. At small n the forced pulls prevent that, at large n "
            "the variance is well known."
        )
    height = high["rescaled_regret"] - matching(b, n=high["n"])[0]["rescaled_regret"]
    texts.append(
        f"The paper's estimator had a standard error of {high['paper_error']:.2g} at n = {high['n']:,} and "
        f"{b[-1]['paper_error']:.2g} at n = {b[-1]['n']:,}: "
        + (
            "the peak would show on a grid of n that has points there; the fall after it would not."
            if abs(height) > 3 * high["paper_error"]
            else "too large to show it."
        )
    )
    return " ".join(texts)


def _right_claims(made: Tables) -> list[Claim]:
    where = "Section 5.2, right figure"
    gaussian = matching(made["right"], partner="Gaussian", strategy=b_as(A))
    rademacher = matching(made["right"], partner="Rademacher", strategy=b_as(A))
    unequal = [row for row in gaussian if row["ratio"] > 2]
    flat = _ratio(unequal) <= FLAT
    last = unequal[-1]
    power = exponent(unequal[0], last, "rescaled_regret", "ratio")
    found = [
        Claim(
            where,
            "For two Gaussian arms the rescaled regret of B-AS does not depend on 1/λ_min.",
            f"The largest is at most {FLAT} times the smallest, over 1/λ_min > 2.",
            f"{_share(unequal[0])}, {_share(last)}: a power of {power:.2f} of 1/λ_min",
            flat,
            ""
            if flat
            else "It grows about as 4A sqrt(Σ), and Σ = 1/λ_min here; Theorem 3's bound, which is free of λ_min, has Σ "
            f"as a factor. The paper's estimator, with 50,000 runs, had a standard error of "
            f"{last['paper_error']:.2g} at {last['ratio']}, too large to show the growth.",
        )
    ]
    rises = all(other["rescaled_regret"] > one["rescaled_regret"] for one, other in pairwise(rademacher))
    above = rademacher[-1]["rescaled_regret"] - gaussian[-1]["rescaled_regret"]
    above_error = math.hypot(rademacher[-1]["rescaled_error"], gaussian[-1]["rescaled_error"])
    holds = rises and above > 5 * above_error
    found.append(
        Claim(
            where,
            "For a Gaussian and a Rademacher arm it increases with 1/λ_min.",
            "It is larger at every 1/λ_min than at the previous one, and at the last above that of two Gaussian arms.",
            f"{_share(rademacher[1])}, {_share(rademacher[-1])}; two Gaussian arms: {_share(gaussian[-1])}",
            holds,
            "" if holds else "It does not rise throughout.",
        )
    )
    worst = max(matching(made["shape"], partner="Rademacher", exploration=A), key=lambda row: row["gap"])
    others, error = worst["gap others"] / worst["gap"], worst["gap others error"] / worst["gap"]
    mechanism = others > 0.5
    found.append(
        Claim(
            where,
            "The increase comes from pulling the Rademacher arm more when its mean is accurate.",
            "Where the arm's loss is furthest above s² E[1/T], more than half of the difference is due to runs that "
            "are not starved.",
            f"1/λ_min = {worst['ratio']}: {100 * others:.1f}% (standard error {100 * error:.1f}%) of it; "
            f"{100 * worst['starved']:.1f}% of the runs are starved, with {worst['starved pulls']:.1f} pulls where n "
            f"λ_min is {_best_pulls(made, worst):g}",
            mechanism,
            ""
            if mechanism
            else "It comes from starvation: the first j draws are equal with probability 2^(1-j), the sample variance "
            "is then 0, and the arm is not pulled again until T is about 2A sqrt(n/Σ).",
        )
    )
    identity = [row for row in made["shape"] if row["partner"] == "Rademacher"]
    control = [row for row in made["shape"] if row["partner"] == "Gaussian"]
    negative = all(row["identity"] < 1e-9 and row["correlation given T"] < -0.9 for row in identity)
    nothing = max(abs(row["correlation given T"]) for row in control)
    found.append(
        Claim(
            "Section 5.2",
            "Given T, the squared error of a Rademacher arm's mean and its sample variance are negatively correlated.",
            "The sample variance is T/(T-1) (1 - mean²) in every run, and their correlation given T is below -0.9.",
            f"correlation given T: {max(row['correlation given T'] for row in identity):.3f} or less; on Gaussian "
            f"arms at most {nothing:.3f} either way",
            negative,
            "" if negative else "The identity fails.",
        )
    )
    fed = [
        row["ratio"] for row in matching(made["shape"], partner="Rademacher", exploration=1.0) if row["starved"] < 1e-3
    ]
    one, other = (
        matching(made["right"], partner=name, strategy=b_as(1.0), ratio=fed[-1])[0]
        for name in ("Gaussian", "Rademacher")
    )
    gap = other["rescaled_regret"] - one["rescaled_regret"]
    gap_error = math.hypot(one["rescaled_error"], other["rescaled_error"])
    shaped = abs(gap) > 5 * gap_error
    found.append(
        Claim(
            where,
            "The shape of the laws matters, and not their variances alone.",
            "With A = 1, where fewer than one run in 1,000 is starved, the two second arms differ by over five "
            "standard errors.",
            f"1/λ_min = {one['ratio']}: {with_error(gap, gap_error)} more with the Rademacher arm, "
            f"{100 * gap / one['rescaled_regret']:.1f}%",
            shaped,
            "" if shaped else "The two do not differ by more than five standard errors.",
        )
    )
    ratios = []
    for one in matching(made["right"], partner="Gaussian", strategy=AUTO):
        for row in matching(made["right"], ratio=one["ratio"], strategy=AUTO):
            if one["ratio"] > 2 and one["rescaled_regret"] > 0:
                ratios.append((row["rescaled_regret"] / one["rescaled_regret"], row, one))
    most = max(ratios, key=lambda each: each[0])
    of_rademacher = max(ratio for ratio, row, _ in ratios if row["partner"] == "Rademacher")
    same = most[0] > FLAT
    found.append(
        Claim(
            "Section 5.2",
            "Any algorithm that is based on empirical standard deviations is subject to the same problem.",
            f"auto is one of them: for some second arm and some 1/λ_min > 2 its rescaled regret is over {FLAT} times "
            "that with the Gaussian arm.",
            f"auto with an {most[1]['partner']} arm has {_share(most[1])}, with a Gaussian one {_share(most[2])}: "
            f"{most[0]:.3g} times; with a Rademacher arm at most {of_rademacher:.3g} times",
            same,
            ""
            if same
            else "auto shrinks the variance of an arm with few samples toward the mean of all arms, so that a small "
            "one has little weight.",
        )
    )
    return found


def _best_pulls(made: Tables, row: Row) -> float:
    return float(made["right"][0]["n"] / row["ratio"])


def _quiet_claims(made: Tables) -> list[Claim]:
    where = "Remark 3"
    ch, gafs = matching(made["remark3"], strategy="CH-AS"), matching(made["remark3"], strategy=gafs_max(ALPHA))
    exact = max(abs(row["pulls"] - row["balance"]) - 5 * row["pulls_error"] for row in ch)
    share = [row["pulls"] / row["n"] ** (2 / 3) for row in ch]
    enough = all(y >= x for x, y in pairwise(share)) and exact <= 1
    limit = _limit(theory.remark3_pulls)
    found = [
        Claim(
            where,
            "CH-AS pulls an arm of zero variance at least D n^(2/3) times.",
            "Pulls over n^(2/3) do not fall as n grows, and are within a pull of the balance of the two indices.",
            f"exponents {_exponents(ch, 'pulls_exponent')}; pulls are within {max(0.0, exact):.2f} of the balance, "
            f"whose exponent, without the part of log n, is {limit:.3f} at n = 10^15",
            enough,
            "" if enough else "The pulls are not those of the balance.",
        )
    ]
    known = [row for row in ch if math.isfinite(row["regret"])]
    off = max(abs(row["regret"] / row["balance_regret"] - 1) - 5 * row["regret_error"] / row["regret"] for row in known)
    rate = _limit(theory.remark3_regret)
    slow = off <= 0.02 and abs(rate + 4 / 3) < 0.02
    found.append(
        Claim(
            where,
            "The regret of CH-AS then has the rate n^(-4/3).",
            "The regret is within 2% of what the balance of the indices gives, whose exponent tends to -4/3.",
            f"exponents {_exponents(known, 'regret_exponent')}; within {100 * max(0.0, off):.1f}% of the balance, "
            f"whose exponent, without the part of log n, is {rate:.3f} at n = 10^15",
            slow,
            "" if slow else "The regret is not that of the balance.",
        )
    )
    apart = max(abs(row["pulls"] - row["balance"]) for row in gafs)
    root = abs(gafs[-1]["pulls_exponent"] - 0.5) < 0.02 and apart <= 1
    found.append(
        Claim(
            where,
            "GAFS-MAX over-pulls it by n^(1/2) only.",
            "Its pulls are α sqrt(n) + 1 to within one, with an exponent of 1/2.",
            f"exponents {_exponents(gafs, 'pulls_exponent')}; within {apart:.2f} of α sqrt(n) + 1",
            root,
            "" if root else "Its pulls grow at another rate.",
        )
    )
    known = [row for row in gafs if math.isfinite(row["regret"])]
    fast = abs(known[-1]["regret_exponent"] + 1.5) < 0.05
    found.append(
        Claim(
            where,
            "The regret of GAFS-MAX then has the rate n^(-3/2).",
            "The exponent between the last two n is within 0.05 of -3/2.",
            f"exponents {_exponents(known, 'regret_exponent')}",
            fast,
            "" if fast else "The exponent is different.",
        )
    )
    return found


def _limit(of: Callable[[float], float], n: float = 1e15) -> float:
    """The power of n at a very large n, without what the logarithm in delta = n^{-5/2} adds: 1/(3 log n)."""
    return math.log(of(10 * n) / of(n)) / math.log(10) - 1 / (3 * math.log(n))


def _lemma_claims(made: Tables) -> list[Claim]:
    gaussian = [row for row in made["lemma"] if row["arm"].startswith("N")]
    other = [row for row in made["lemma"] if not row["arm"].startswith("N")]
    sigmas = [abs(row["difference"]) / row["difference_error"] for row in gaussian if row["difference_error"] > 0]
    widest = max(row["difference_error"] / row["loss"] for row in gaussian)
    holds = max(sigmas) <= 5
    found = [
        Claim(
            "Lemma 3",
            "The loss of a Gaussian arm is s² E[1/T], although T depends on the samples.",
            "Estimated without the lemma, the loss is within five standard errors of it, for each arm, strategy and n.",
            f"at most {max(sigmas):.2g} standard errors apart in {len(sigmas)} cases; a standard error is at most "
            f"{100 * widest:.2g}% of the loss",
            holds,
            "" if holds else "They differ.",
        )
    ]
    if other:
        row = max(other, key=lambda each: abs(each["difference"]) / each["difference_error"])
        fails = abs(row["difference"]) > 5 * row["difference_error"]
        found.append(
            Claim(
                "Section 5.2",
                "It does not carry over to a Rademacher arm.",
                "Its loss differs from s² E[1/T] by more than five standard errors somewhere.",
                f"{row['arm']}, {row['strategy']}: loss {with_error(row['loss'], row['loss_error'])}, s² E[1/T] "
                f"{row['s2_mean_1_over_T']:.4g}",
                fails,
                "" if fails else "No such difference was measured.",
            )
        )
    return found


BOUNDS = {
    "Lemma 1": "Bounds on the pulls of CH-AS.",
    "Theorem 1": "A bound on the regret of CH-AS, with λ_min^(-5/2).",
    "Lemma 2": "Bounds on the pulls of B-AS.",
    "Theorem 2": "A bound on the regret of B-AS, with 1/λ_min.",
    "Theorem 3": "A bound on the regret of B-AS on Gaussian arms, without λ_min.",
}


def _bound_claims(made: Tables) -> list[Claim]:
    found = []
    for name, claim in BOUNDS.items():
        rows = [row for row in made["bounds"] if row["statement"].startswith(name)]
        holds = all(row["holds"] for row in rows)
        n = made["right"][0]["n"]
        texts = []
        for row in rows:
            what = row["statement"].partition(", ")[2]
            trivial = name.startswith("Lemma") and not 0 < row["stated"] < n
            texts.append(
                f"{what} {with_error(row['measured'], row['error'])}, bound {amount(row['stated'], 3)}"
                + (" (trivial at this n)" if trivial else "")
            )
        found.append(
            Claim(
                name,
                claim,
                "No run is outside the bounds." if name.startswith("Lemma") else "The regret is at most the bound.",
                f"n = {n:,}: {'; '.join(texts)}",
                holds,
                "" if holds else "A bound is violated.",
            )
        )
    return found


def _extremes(rows: Sequence[Row]) -> tuple[Row, Row]:
    return min(rows, key=lambda row: row["rescaled_regret"]), max(rows, key=lambda row: row["rescaled_regret"])


def _ratio(rows: Sequence[Row]) -> float:
    low, high = _extremes(rows)
    return high["rescaled_regret"] / low["rescaled_regret"] if low["rescaled_regret"] > 0 else math.inf


def _at(row: Row) -> str:
    return f"{with_error(row['rescaled_regret'], row['rescaled_error'])} at n = {row['n']:,}"


def _share(row: Row) -> str:
    return f"{with_error(row['rescaled_regret'], row['rescaled_error'])} at {row['ratio']}"


def _exponents(rows: Sequence[Row], name: str) -> str:
    known = [row for row in rows if math.isfinite(row[name])]
    return f"{known[0][name]:.3f} up to n = {known[0]['n']:,}, {known[-1][name]:.3f} up to n = {known[-1]['n']:,}"
