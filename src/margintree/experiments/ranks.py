"""Do methods differ over several data sets? The tests of Friedman and Nemenyi for many methods, Wilcoxon's for two.

Methods are ranked in every setting; 1 is the best, and ties share the mean of their ranks. Friedman's test asks whether
the mean ranks could be those of equal methods. If not, two methods differ at the level alpha where their mean ranks lie
further apart than the critical difference q sqrt(k (k + 1) / (6 N)), with k methods, N settings and q the quantile of
the studentized range over sqrt(2) (Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, 2006).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

ALPHA = 0.05
# The tables print two decimals; values that print the same share a rank.
DECIMALS = 2


class RankTest(NamedTuple):
    """Mean ranks with the p-value of Friedman's test and Nemenyi's critical difference."""

    mean_ranks: dict[str, float]
    n_settings: int
    p_value: float
    critical_difference: float


class Comparison(NamedTuple):
    """Comparison of two methods over several settings, or over several splits.

    ``p_value`` is that of Wilcoxon's signed-rank test: how likely such differences are if the methods are equal.
    """

    n_ahead: int
    mean_difference: float
    p_value: float

    @property
    def winner(self) -> int:
        """1 if the first method is significantly better, -1 if the second is, 0 if neither is."""
        return 0 if self.p_value >= ALPHA else int(np.sign(self.mean_difference))


def compare(ones: Sequence[float], others: Sequence[float]) -> Comparison:
    """Compare two methods by values of the same settings."""
    difference = np.round(np.subtract(ones, others), DECIMALS)
    p_value = float(wilcoxon(difference).pvalue) if difference.any() else 1.0
    return Comparison(int((difference > 0).sum()), float(difference.mean()), p_value)


def rank_test(rows: Sequence[Mapping[str, float]]) -> RankTest | None:
    """Return the tests over the methods that have a value in every row; None with fewer than three of either."""
    methods = [name for name in rows[0] if all(name in row for row in rows)] if rows else []
    k, n = len(methods), len(rows)
    if k < 3 or n < 3:
        return None
    ranks = rankdata([[-round(row[name], DECIMALS) for name in methods] for row in rows], axis=1)
    quantile = studentized_range.ppf(1.0 - ALPHA, k, np.inf) / np.sqrt(2.0)
    difference = float(quantile * np.sqrt(k * (k + 1) / (6.0 * n)))
    means = dict(zip(methods, ranks.mean(axis=0).tolist(), strict=True))
    return RankTest(means, n, float(friedmanchisquare(*ranks.T).pvalue), difference)
