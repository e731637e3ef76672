"""What is run: settings, splits, grids and seeds, for the whole experiment and for the quick one."""

import hashlib
import json
from dataclasses import asdict, dataclass

from margintree.experiments import paper

POWERS_OF_TEN = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Protocol:
    """A run's rules. Everything that changes a result is in here, so that a results file knows what made it.

    Parameters
    ----------
    name : str
    settings : tuple of (set, kernel)
    n_splits : int
        Random splits into training and test rows; split i is drawn with seed i.
    n_folds : int
        Folds of the cross-validation that tunes, on the training rows of split 0. Sets of ``few_rows`` have 3.
    costs, etas, balances : tuple of float
        The grids. C and eta are tuned at the first balance, the other balances at the best of those points.
    tuning_rows : int
        Training rows that tuning uses at most; where there are more, a stratified draw of them.
    kept_points : int
        Points of the grid that the first fold passes on to the other folds.
    kept_within : float
        Points whose accuracy in the first fold, in %, lies further than this below the best one go no further.
    balance_points : int
        Points for which the other balances are tried.
    few_rows : tuple of str
        Sets with too few rows per class for ``n_folds``.
    timed_rows : int
        Test rows that are predicted one at a time, per timing.
    curve_setting : (set, kernel)
        Of Figure 2.
    curve_classes : tuple of int
        Numbers of classes in Figure 2.
    digits_setting : (set, kernel)
        Of Figure 1.
    """

    name: str
    settings: tuple[tuple[str, str], ...]
    n_splits: int
    n_folds: int
    costs: tuple[float, ...]
    etas: tuple[float, ...]
    balances: tuple[float, ...]
    tuning_rows: int
    kept_points: int
    kept_within: float
    balance_points: int
    few_rows: tuple[str, ...]
    timed_rows: int
    curve_setting: tuple[str, str]
    curve_classes: tuple[int, ...]
    digits_setting: tuple[str, str]

    @property
    def fingerprint(self) -> str:
        """A short digest of all rules; results of different rules must not share a file.

        Examples
        --------
        >>> from margintree.experiments.protocol import FULL, QUICK
        >>> FULL.fingerprint == QUICK.fingerprint
        False
        """
        rules = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(rules.encode()).hexdigest()[:16]

    def folds(self, data_set: str) -> int:
        """Return the number of folds for a data set.

        Examples
        --------
        >>> from margintree.experiments.protocol import FULL
        >>> FULL.folds("vowel"), FULL.folds("sector")
        (5, 3)
        """
        return min(3, self.n_folds) if data_set in self.few_rows else self.n_folds


FULL = Protocol(
    name="full",
    settings=paper.SETTINGS,
    n_splits=7,
    n_folds=5,
    costs=POWERS_OF_TEN,
    etas=POWERS_OF_TEN,
    balances=(0.3, 0.1, 0.7),
    tuning_rows=1500,
    kept_points=8,
    kept_within=5.0,
    balance_points=2,
    few_rows=("sector",),
    timed_rows=200,
    curve_setting=("news20", "linear"),
    curve_classes=(2, 5, 8, 11, 14, 17, 20),
    digits_setting=("usps", "rbf"),
)

QUICK = Protocol(
    name="quick",
    settings=(("digits", "rbf"), ("digits", "linear")),
    n_splits=3,
    n_folds=3,
    costs=(0.1, 1.0, 10.0),
    etas=(0.1, 1.0),
    balances=(0.3,),
    tuning_rows=600,
    kept_points=2,
    kept_within=5.0,
    balance_points=1,
    few_rows=(),
    timed_rows=100,
    curve_setting=("digits", "linear"),
    curve_classes=(2, 4, 6, 8, 10),
    digits_setting=("digits", "rbf"),
)

PROTOCOLS = {protocol.name: protocol for protocol in (FULL, QUICK)}
