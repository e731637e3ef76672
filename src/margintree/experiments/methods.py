"""The methods of the comparison: which estimator each one is, and the parameters that are not tuned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from margintree.estimators.conditional_probability_tree import ConditionalProbabilityTreeClassifier
from margintree.estimators.decision_dag import DecisionDAGClassifier
from margintree.estimators.filter_tree import FilterTreeClassifier
from margintree.estimators.label_tree import LabelTreeClassifier
from margintree.estimators.margin_tree import MarginTreeClassifier
from margintree.estimators.one_vs_one import OneVsOneSVC
from margintree.estimators.one_vs_rest import OneVsRestSVC


@dataclass(frozen=True)
class Method:
    """A column of the tables.

    Parameters
    ----------
    name : str
    estimator : type
    paper_name : str or None
        The paper's column that it stands beside. None for a method that the paper's tables lack.
    family : {"margin tree", "tree", "flat"}
    parameters : dict
        Parameters of the estimator that are not tuned.
    kernels : tuple of str
    tunes_balance : bool
    tuned_with : str or None
        Method whose tuned parameters it takes.
    effort : float
        Rough time of a fit relative to 1vsR, for the order of jobs and the estimate of the remaining time.
    """

    name: str
    estimator: type
    paper_name: str | None
    family: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kernels: tuple[str, ...] = ("linear", "rbf")
    tunes_balance: bool = False
    tuned_with: str | None = None
    effort: float = 1.0

    def model(self, kernel: str, parameters: Mapping[str, Any]) -> Any:
        """Return the unfitted estimator; ``parameters`` has C and, where they apply, gamma and balance."""
        return self.estimator(kernel=kernel, random_state=0, **self.parameters, **parameters)


_ALL = (
    Method(
        "MSM (paper)",
        MarginTreeClassifier,
        "MSM",
        "margin tree",
        {"split": "paper", "fit_intercept": False, "walk": "greedy", "calibration_folds": 0},
        tunes_balance=True,
        effort=40.0,
    ),
    Method("MSM (ours)", MarginTreeClassifier, None, "margin tree", tunes_balance=True, effort=2.0),
    Method("I-BWG", LabelTreeClassifier, "I-BWG", "tree", {"joint": False}, effort=3.0),
    Method("J-BWG", LabelTreeClassifier, "J-BWG", "tree", {"joint": True}, kernels=("linear",), effort=6.0),
    Method("FT", FilterTreeClassifier, "FT", "tree", effort=0.7),
    Method("CPT", ConditionalProbabilityTreeClassifier, "CPT", "tree", {"node": "svm"}, effort=0.8),
    Method("1vs1", OneVsOneSVC, "1vs1", "flat"),
    Method("1vsR", OneVsRestSVC, "1vsR", "flat"),
    Method("DDAG", DecisionDAGClassifier, None, "flat", tuned_with="1vs1"),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL}
