"""Do methods differ over several data sets? The test of Friedman, and that of Nemenyi for pairs.

Methods are ranked in every setting, 1 the best, equal ones share the mean of their ranks. Friedman's test asks
whether the mean ranks could be those of equal methods. If not, two methods differ at the level alpha where their mean
ranks lie further apart than the critical difference q sqrt(k (k + 1) / (6 N)), with k methods, N settings and
q the quantile of the studentized range over sqrt(2) (Demsar, Statistical Comparisons of Classifiers over Multiple
Data Sets, 2006).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

ALPHA = 0.05
# The tables print two decimals; what is equal there shares a rank.
DECIMALS = 2


@dataclass(frozen=True)
class RankTest:
    """Mean ranks with the tests. ``p_value`` and ``critical_difference`` are None where there are too few settings."""

    mean_ranks: dict[str, float]
    n_settings: int
    p_value: float | None
    critical_difference: float | None

    def differ(self, one: str, other: str) -> bool | None:
        """Tell whether two methods differ; None if that cannot be told."""
        if self.critical_difference is None or self.p_value is None:
            return None
        distance = abs(self.mean_ranks[one] - self.mean_ranks[other])
        return self.p_value < ALPHA and distance > self.critical_difference


def ranks(values: Mapping[str, float]) -> dict[str, float]:
    """Return the rank of each method, 1 for the highest value.

    Examples
    --------
    >>> from margintree.experiments.ranks import ranks
    >>> ranks({"a": 90.0, "b": 95.0, "c": 90.0})
    {'a': 2.5, 'b': 1.0, 'c': 2.5}
    """
    found = rankdata([-round(value, DECIMALS) for value in values.values()])
    return dict(zip(values, found.tolist(), strict=True))


def rank_test(rows: Sequence[Mapping[str, float]]) -> RankTest | None:
    """Return the tests over the methods that have a value in every row, one row per setting.

    Examples
    --------
    >>> from margintree.experiments.ranks import rank_test
    >>> test = rank_test([{"a": 9.0, "b": 8.0, "c": 7.0}] * 10)
    >>> test.mean_ranks, test.differ("a", "c"), test.differ("a", "b")
    ({'a': 1.0, 'b': 2.0, 'c': 3.0}, True, False)
    """
    if not rows:
        return None
    methods = [name for name in rows[0] if all(name in row for row in rows)]
    k, n = len(methods), len(rows)
    if k < 2:
        return None
    table = np.array([list(ranks({name: row[name] for name in methods}).values()) for row in rows])
    means = dict(zip(methods, table.mean(axis=0).tolist(), strict=True))
    if k < 3 or n < 3:
        return RankTest(means, n, None, None)
    p_value = float(friedmanchisquare(*table.T).pvalue)
    quantile = float(studentized_range.ppf(1.0 - ALPHA, k, np.inf)) / np.sqrt(2.0)
    return RankTest(means, n, p_value, float(quantile * np.sqrt(k * (k + 1) / (6.0 * n))))
