"""Why a row was given its class: the path, the classes given up along it, and the final decision."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

from margintree.inspection.labels import first_names, one_line, shortened

LONGEST_GROUP, LONGEST_FEATURE = 44, 24


@dataclass(frozen=True)
class Contribution:
    """Contribution of a feature to a decision value: its weight times its value in the row.

    Positive contributions are in favour of the side that was taken, or of the class that is named first.
    """

    feature: str
    value: float
    weight: float
    contribution: float


@dataclass(frozen=True)
class PathStep:
    """One node on the path to the predicted class.

    Attributes
    ----------
    node : int
        Its number in ``tree_``.
    side : {"left", "right"}
        The side of the predicted class.
    decision_value : float
        Of the node's machine; a positive value means left.
    margin : float
        2 / |w|^2 of the node's machine.
    probability : float or None
        Calibrated probability of the side. None without calibration.
    kept, given_up : list
        Labels of the classes on this side, and on the other one.
    features : list of Contribution
        Those with the largest contributions for and against the side, in decreasing order; empty for kernels
        other than linear.
    """

    node: int
    side: str
    decision_value: float
    margin: float
    probability: float | None
    kept: list[Any]
    given_up: list[Any]
    features: list[Contribution]

    @property
    def is_preferred(self) -> bool:
        """Whether the machine of the node prefers the side of the predicted class."""
        return (self.decision_value > 0.0) == (self.side == "left")


@dataclass(frozen=True)
class Finalist:
    """A class that the walk nominated.

    Attributes
    ----------
    label : object
    path_probability : float or None
        Of the path to the class. None if no path was followed, or without calibration.
    score : float or None
        Score of the decider; the highest wins. With ``decided_by="rest"`` it is the value of the machine of the class
        plus the weighted path score, with "pairs" the log of the coupled probability plus the weighted path score, with
        "paths" the log probability of the path.
    probability : float or None
        As given by ``predict_proba``.
    """

    label: Any
    path_probability: float | None
    score: float | None
    probability: float | None


@dataclass(frozen=True)
class Comparison:
    """Two finalists compared, the winner first.

    Attributes
    ----------
    winner, loser : object
    log_odds : float
        Log odds of the winner; 0 is a tie.
    source : {"machine", "paths", "scores"}
        The machine of this pair, the difference of the path scores if the pair has no machine, or the difference of the
        scores of the one-vs-rest machines.
    features : list of Contribution
        For the predicted class and its strongest opponent, with linear machines.
    """

    winner: Any
    loser: Any
    log_odds: float
    source: str
    features: list[Contribution]


@dataclass(frozen=True)
class Explanation:
    """Explanation of a prediction, as returned by ``explain``. ``str()`` gives a table, ``plot()`` a figure.

    Attributes
    ----------
    prediction : object
        The label, as given by ``predict``.
    probability : float or None
        Of the label. None without calibration.
    walk : {"greedy", "beam", "all"} or None
        How classes were nominated.
    decided_by : {"walk", "paths", "pairs", "rest"}
        What decided; "walk" is the greedy walk, which ends at one class.
    is_path_followed : bool
        False if one-vs-rest machines rank all classes and the path has no weight. The path to the predicted class is
        shown anyway.
    n_trees : int
        Trees whose path scores are averaged. The path is that of the first.
    path : list of PathStep
        From the root to the predicted class.
    finalists : list of Finalist
        The best first.
    n_finalists : int
        Number of all finalists, including those that are not listed.
    comparisons : list of Comparison
        Between finalists, in the order in which they were made.
    class_names : dict
        Names that table and figure show instead of the labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> model = MarginTreeClassifier(random_state=0).fit(iris.data, iris.target_names[iris.target])
    >>> explanation = model.explain(iris.data.iloc[[0]])
    >>> explanation.prediction
    'setosa'
    >>> sorted(explanation.to_dict())[:3]
    ['comparisons', 'decided_by', 'finalists']
    """

    prediction: Any
    probability: float | None
    walk: str
    decided_by: str
    is_path_followed: bool
    n_trees: int
    path: list[PathStep]
    finalists: list[Finalist]
    n_finalists: int
    comparisons: list[Comparison]
    class_names: dict[Any, str] = field(default_factory=dict, repr=False)

    def name(self, label: Any) -> str:
        """Return the name of a class in the table and in the figure, in one line."""
        return self.class_names.get(label) or one_line(label)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-serialisable lists and dictionaries; numbers that are not finite are None."""
        return {name: _plain(value) for name, value in asdict(self).items() if name != "class_names"}

    def plot(self, *, axes: Any = None) -> Any:
        """Draw the path, the finalists, and the features for and against the prediction.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            Axes for the path, the finalists (not with the greedy walk), and the features (linear kernel).

        Returns
        -------
        matplotlib Figure
        """
        from margintree.inspection.explanation_plot import draw_explanation

        return draw_explanation(self, axes)

    def __str__(self) -> str:
        lines = [self.headline(), ""]
        lines += [f"{self._path_title()}:", *self._path_table()]
        if self.decided_by != "walk":
            lines += ["", f"{self.decision_title()}:", *self._finalist_table()]
            if self.n_finalists > len(self.finalists):
                lines.append(f"  … and {self.n_finalists - len(self.finalists):,} more")
        for comparison in self.comparisons:
            winner, loser = self.name(comparison.winner), self.name(comparison.loser)
            source = " by their paths" if comparison.source == "paths" else ""
            lines.append(f"  {winner} against {loser}: log odds {comparison.log_odds:+.3g}{source}")
            lines += _feature_lines(comparison.features, f"for {winner}", f"for {loser}", "    ")
        return "\n".join(lines)

    def headline(self) -> str:
        """Return the prediction in one line."""
        probability = "" if self.probability is None else f", probability {self.probability:.3f}"
        return f"prediction: {self.name(self.prediction)}{probability}"

    def decision_title(self) -> str:
        """Return what decided between the finalists."""
        if self.n_finalists == 1 and self.decided_by != "walk":
            return "one finalist, nothing to decide"
        number = f"{self.n_finalists:,} finalists"
        return {
            "walk": "the greedy walk ends at one class",
            "paths": f"{number}, decided by their paths",
            "pairs": f"{number}, decided by one-vs-one machines",
            "rest": f"{number}, decided by one-vs-rest machines",
        }[self.decided_by]

    def _path_title(self) -> str:
        if not self.is_path_followed:
            return "path to the predicted class (not followed: one-vs-rest machines rank all classes)"
        return "path" if self.n_trees == 1 else f"path in the first of {self.n_trees} trees"

    def _path_table(self) -> list[str]:
        lines = []
        for step in self.path:
            probability = "" if step.probability is None else f", p {step.probability:.3f}"
            doubt = "" if step.is_preferred else ", its machine prefers the other side"
            facts = f"decision value {step.decision_value:+.3g}, margin {step.margin:.3g}{probability}{doubt}"
            lines.append(f"  [{step.node}] {step.side}: {facts}")
            lines.append(f"      kept:     {self._group(step.kept)}")
            lines.append(f"      given up: {self._group(step.given_up)}")
            lines += _feature_lines(step.features, "for", "against", "      ")
        return lines

    def _group(self, labels: Sequence[Any]) -> str:
        names = [self.name(label) for label in labels]
        return first_names(names, LONGEST_GROUP) + (f" ({len(names):,} classes)" if len(names) > 1 else "")

    def _finalist_table(self) -> list[str]:
        width = max(5, *(len(self.name(f.label)) for f in self.finalists))
        lines = [f"  {'class':<{width}}  {'path':>9}  {'score':>9}  {'probability':>11}"]
        for f in self.finalists:
            path, score, probability = (
                "-" if number is None else f"{number:.4g}" for number in (f.path_probability, f.score, f.probability)
            )
            lines.append(f"  {self.name(f.label):<{width}}  {path:>9}  {score:>9}  {probability:>11}")
        return lines


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _feature_lines(features: Sequence[Contribution], towards: str, against: str, indent: str) -> list[str]:
    lines = []
    for title, sign in ((towards, 1.0), (against, -1.0)):
        found = [f for f in features if f.contribution * sign > 0.0]
        if found:
            texts = [f"{shortened(f.feature, LONGEST_FEATURE)} {f.contribution:+.3g}" for f in found]
            lines.append(f"{indent}{title + ':':<9} {', '.join(texts)}")
    return lines
