"""
The paper's definitions, lemmas and theorems as functions.

Each function checks the assumptions of its statement and returns the number that the statement gives. Where the paper's
text has an error, the reading is that of docs/explanation/paper.md, which also says which function and which test
belong to which statement.

Numbering: the main text has Assumption 1, Lemmas 1 to 3 and Theorems 1 to 3. The appendix goes on with Propositions 1
(the variance on the event) and 2 (Wald), Theorem 4 (Maurer and Pontil), Lemmas 4 (the event of B-AS), 5 (the same at
a random number of pulls) and 6 (the loss outside the event), Proposition 3 (Gaussian mean and variance are
independent), Lemmas 7 (the law of the mean given the variances) and 8 (the variance's recursion).

References
----------
.. [1] A. Carpentier, A. Lazaric, M. Ghavamzadeh, R. Munos, P. Auer, A. Antos, Upper-Confidence-Bound Algorithms for
   Active Learning in Multi-Armed Bandits.
"""

from equipoise.numeric.moments import next_variance as lemma8
from equipoise.theory.bernstein import (
    B,
    B_bound,
    C,
    C_bound,
    a,
    a_bounds,
    c,
    c_bound,
    lemma2_bounds,
    lemma2_least_pulls,
    lemma4_event,
    lemma4_probability,
    lemma4_radius,
    lemma5_radius,
    lemma6,
    lemma6_bound,
    theorem2,
    theorem2_leading,
    theorem3,
    theorem4,
    variance_bound,
)
from equipoise.theory.chernoff import (
    conjectured_regret,
    lemma1_bounds,
    lemma1_event,
    lemma1_probability,
    lemma1_radius,
    remark3_gafs_max_pulls,
    remark3_leading,
    remark3_pulls,
    remark3_regret,
    theorem1,
)
from equipoise.theory.losses import (
    bounded_constants,
    gaussian_constants,
    lemma3,
    lemma7,
    loss_on_event,
    subgaussian_tail,
    wald,
)

__all__ = [
    "B",
    "B_bound",
    "C",
    "C_bound",
    "a",
    "a_bounds",
    "bounded_constants",
    "c",
    "c_bound",
    "conjectured_regret",
    "gaussian_constants",
    "lemma1_bounds",
    "lemma1_event",
    "lemma1_probability",
    "lemma1_radius",
    "lemma2_bounds",
    "lemma2_least_pulls",
    "lemma3",
    "lemma4_event",
    "lemma4_probability",
    "lemma4_radius",
    "lemma5_radius",
    "lemma6",
    "lemma6_bound",
    "lemma7",
    "lemma8",
    "loss_on_event",
    "remark3_gafs_max_pulls",
    "remark3_leading",
    "remark3_pulls",
    "remark3_regret",
    "subgaussian_tail",
    "theorem1",
    "theorem2",
    "theorem2_leading",
    "theorem3",
    "theorem4",
    "variance_bound",
    "wald",
]
