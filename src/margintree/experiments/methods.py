"""The methods of the comparison: the estimator of each, and the parameters that are not tuned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


_ALL = (
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

METHODS: dict[str, Method] = {method.name: method for method in _ALL}
