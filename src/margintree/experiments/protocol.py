"""What is run: settings, splits, grids and seeds, for the whole experiment and for the quick one."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace

from margintree.experiments import paper
from margintree.experiments.readings import READINGS

POWERS_OF_TEN = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Protocol:
    """A run's rules. Everything that changes a result is in here, so that a results file knows what made it."""

    name: str
    settings: tuple[tuple[str, str], ...]  # set and kernel
    n_splits: int  # random splits into training and test rows; split i is drawn with seed i
    n_folds: int  # of the cross-validation that tunes, on the training rows of split 0
    costs: tuple[float, ...]  # the grid of C
    etas: tuple[float, ...]  # the grid of the Gaussian kernel
    balances: tuple[float, ...]  # C and eta are tuned at the first, the others tried at the best of those points
    tuning_rows: int  # where there are more training rows, tuning uses a stratified draw of so many
    kept_points: int  # points of the grid that the first fold passes on to the others
    kept_within: float  # those further below the best in the first fold, in %, go no further
    balance_points: int  # points for which the other balances are tried
    few_rows: tuple[str, ...]  # sets with too few rows per class for so many folds: they have 3
    timed_rows: int  # test rows that are predicted one at a time, per timing
    curve_setting: tuple[str, str]  # of Figure 2
    curve_classes: tuple[int, ...]  # numbers of classes in Figure 2
    digits_setting: tuple[str, str]  # of Figure 1
    readings: tuple[str, ...]  # of the paper, which are run beside the settings

    @property
    def fingerprint(self) -> str:
        """A short digest of all rules; results of different rules must not share a file."""
        rules = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(rules.encode()).hexdigest()[:16]

    def folds(self, data_set: str) -> int:
        """Return the number of folds for a data set."""
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
    kept_points=6,
    kept_within=5.0,
    balance_points=1,
    few_rows=("sector", "caltech101"),
    timed_rows=200,
    curve_setting=("news20", "linear"),
    curve_classes=(2, 5, 8, 11, 14, 17, 20),
    digits_setting=("usps", "rbf"),
    readings=tuple(READINGS),
)
QUICK = replace(
    FULL,
    name="quick",
    settings=(("digits", "rbf"), ("digits", "linear")),
    n_splits=3,
    n_folds=3,
    costs=(0.1, 1.0, 10.0),
    etas=(0.1, 1.0),
    balances=(0.3,),
    tuning_rows=600,
    kept_points=2,
    timed_rows=100,
    curve_setting=("digits", "linear"),
    curve_classes=(2, 4, 6, 8, 10),
    digits_setting=("digits", "rbf"),
    readings=(),
)
PROTOCOLS = {protocol.name: protocol for protocol in (FULL, QUICK)}
