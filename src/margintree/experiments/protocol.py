"""What is run: settings, splits, grids and seeds, for the whole experiment and for the quick one."""

import hashlib
import json
from dataclasses import asdict, dataclass

from margintree.experiments import paper
from margintree.experiments.methods import READINGS

POWERS_OF_TEN = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Protocol:
    """The rules of a run, by default those of the whole experiment.

    Everything that affects a result is here, so that a results file is tied to its rules.
    """

    name: str = "full"
    settings: tuple[tuple[str, str], ...] = paper.SETTINGS  # set and kernel
    n_splits: int = 7  # random splits into training and test rows; split i is drawn with seed i
    n_folds: int = 5  # of the cross-validation that tunes, on the training rows of split 0
    costs: tuple[float, ...] = POWERS_OF_TEN  # the grid of C
    etas: tuple[float, ...] = POWERS_OF_TEN  # the grid of the Gaussian kernel
    # C and eta are tuned at the first, the others tried at the best of those points.
    balances: tuple[float, ...] = (0.3, 0.1, 0.7)
    tuning_rows: int = 1500  # where there are more training rows, tuning uses a stratified draw of so many
    kept_points: int = 6  # points of the grid that the first fold passes on to the others
    kept_within: float = 5.0  # those further below the best in the first fold, in %, go no further
    balance_points: int = 1  # points for which the other balances are tried
    few_rows: tuple[str, ...] = ("sector", "caltech101")  # too few rows per class for so many folds: they have 3
    timed_rows: int = 200  # test rows that are predicted one at a time, per timing
    curve_setting: tuple[str, str] = ("news20", "linear")  # of Figure 2
    curve_classes: tuple[int, ...] = (2, 5, 8, 11, 14, 17, 20)  # numbers of classes in Figure 2
    digits_setting: tuple[str, str] = ("usps", "rbf")  # of Figure 1
    readings: tuple[str, ...] = tuple(READINGS)  # of the paper, which are run beside the settings

    @property
    def fingerprint(self) -> str:
        """A short digest of all rules; results of different rules must not share a file."""
        rules = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(rules.encode()).hexdigest()[:16]

    def folds(self, data_set: str) -> int:
        """Return the number of folds for a data set."""
        return min(3, self.n_folds) if data_set in self.few_rows else self.n_folds


FULL = Protocol()
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
    timed_rows=100,
    curve_setting=("digits", "linear"),
    curve_classes=(2, 4, 6, 8, 10),
    digits_setting=("digits", "rbf"),
    readings=(),
)
PROTOCOLS = {protocol.name: protocol for protocol in (FULL, QUICK)}
