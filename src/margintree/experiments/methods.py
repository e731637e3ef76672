"""The methods of the comparison, and other readings of the paper's experiment.

A method is an estimator with the parameters that are not tuned. A reading says what the paper does not, and would
explain its figures: a setting of its own, with the rows of a set of Table 1, the methods it concerns, and one change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import MaxAbsScaler

import margintree as mt
from margintree.splits import RelaxationSplit

# The two comparisons, each with a table of its own: as the paper runs its methods, and as a user would; and methods
# that only stand in a reading of the paper.
PAPER, USERS, READING = "paper", "users", "reading"
NO_BIAS = " (no bias)"


@dataclass(frozen=True)
class Method:
    """A column of the tables: an estimator with the parameters that are not tuned."""

    name: str
    estimator: type
    comparison: str
    paper_name: str | None = None  # the paper's column that it stands beside
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kernels: tuple[str, ...] = ("linear", "rbf")
    tunes_balance: bool = False
    tuned_with: str | None = None  # the method whose tuned parameters it takes

    @property
    def title(self) -> str:
        """The name in tables whose title already says that no method has a bias."""
        return self.name.removesuffix(NO_BIAS)

    def model(self, kernel: Any, parameters: Mapping[str, Any], seed: int) -> Any:
        """Return the unfitted estimator; ``parameters`` has C and, where they apply, gamma and balance."""
        return self.estimator(kernel=kernel, random_state=seed, **self.parameters, **parameters)


def _algorithm_1(name: str, rounding: str, comparison: str = PAPER, **given: Any) -> Method:
    """Return Algorithm 1 of the paper with a way to round the relaxation."""
    split = RelaxationSplit(oracle="linf", mkl="simplemkl", rounding=rounding)
    parameters = {"split": split, "fit_intercept": False, "walk": "greedy", "calibration_folds": 0, "prune": 0.0}
    return Method(name, mt.MarginTreeClassifier, comparison, "MSM", parameters, **given)


def _without_bias(paper_name: str, estimator: type, **parameters: Any) -> Method:
    kernels = ("linear",) if paper_name == "J-BWG" else ("linear", "rbf")
    return Method(paper_name + NO_BIAS, estimator, PAPER, paper_name, {"fit_intercept": False, **parameters}, kernels)


_ALL_METHODS = (
    _algorithm_1("MSM (paper)", "kruskal", tunes_balance=True),
    _algorithm_1("MSM (balanced cut)", "balanced_kruskal", tuned_with="MSM (paper)"),
    _without_bias("I-BWG", mt.LabelTreeClassifier, joint=False),
    _without_bias("J-BWG", mt.LabelTreeClassifier, joint=True),
    _without_bias("FT", mt.FilterTreeClassifier),
    _without_bias("CPT", mt.ConditionalProbabilityTreeClassifier, node="svm"),
    _without_bias("1vs1", mt.OneVsOneSVC),
    _without_bias("1vsR", mt.OneVsRestSVC),
    Method("MSM (ours)", mt.MarginTreeClassifier, USERS, tunes_balance=True),
    Method("1vs1", mt.OneVsOneSVC, USERS),
    Method("1vsR", mt.OneVsRestSVC, USERS),
    Method("DDAG", mt.DecisionDAGClassifier, USERS, tuned_with="1vs1"),
    _algorithm_1("MSM (heaviest plane)", "heaviest_plane", READING, tunes_balance=True),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL_METHODS}

# A constant feature of this square is so cheap in |w|^2, beside the losses of thousands of rows, that the bias it
# supplies is nearly free. With 100 and 10,000 the accuracies are the same, and training takes longer.
FREE = 10.0


class Reading(NamedTuple):
    """A changed setting."""

    name: str  # stands in place of the data set's name in the results
    data_set: str
    kernel: str
    methods: tuple[str, ...]
    change: str
    etas: tuple[float, ...] = ()  # in place of the grid, if any
    has_free_bias: bool = False  # as machines have that sequential minimal optimization trains
    scaling: Callable[[], Any] | None = None  # the transformer in place of the set's usual preparation


@dataclass(frozen=True)
class FreeBiasKernel:
    """The Gaussian kernel with a constant feature that is nearly free."""

    gamma: float

    def __call__(self, A: Any, B: Any) -> npt.NDArray[np.float64]:
        """Return the kernel values between two sets of rows."""
        return np.asarray(rbf_kernel(A, B, gamma=self.gamma)) + FREE


SCALED = "every feature divided by its maximum over all rows, in place of tf-idf"
FREE_BIAS = "a bias that costs nothing, as sequential minimal optimization has it, and η = 10"
HEAVIEST = "the plane with the largest weight in place of the cut of the spanning tree"
ALGORITHM_1, PLANE = ("MSM (paper)",), ("MSM (heaviest plane)",)
OTHERS = tuple(name for name, method in METHODS.items() if method.comparison == PAPER and method.paper_name != "MSM")
WITH_KERNELS = tuple(name for name in OTHERS if "rbf" in METHODS[name].kernels)
_ALL_READINGS = (
    Reading("news20, scaled counts", "news20", "linear", ALGORITHM_1 + OTHERS, SCALED, scaling=MaxAbsScaler),
    Reading("satimage, η = 10, free bias", "satimage", "rbf", WITH_KERNELS, FREE_BIAS, (10.0,), True),
    Reading("satimage, η = 10", "satimage", "rbf", ALGORITHM_1, "η = 10, without bias", (10.0,)),
    Reading("vowel, heaviest plane", "vowel", "linear", PLANE, HEAVIEST),
    Reading("Caltech 101, heaviest plane", "caltech101", "linear", PLANE, HEAVIEST),
)

READINGS: dict[str, Reading] = {reading.name: reading for reading in _ALL_READINGS}
