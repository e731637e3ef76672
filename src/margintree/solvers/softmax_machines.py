"""Joint machines of all classes for dense rows: multinomial logistic regression on the lists of finalists.

The class of a dense row shows in its distances from the class means, in the metric of the shared covariance, in which
classes are spherical. Rows are transformed to this metric once. There the offset is the blend of the scores of linear
discriminant analysis and of the path with the largest likelihood; the machines learn the rest.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from margintree import compiled
from margintree.solvers.class_metric import ClassMetric, sums_by_class
from margintree.solvers.classifier import LinearClassifier, NodeClassifier
from margintree.solvers.score_weights import ScoreGroups
from margintree.solvers.solution import Array
from margintree.solvers.training_set import LinearTrainingSet, pieces
from margintree.worker_threads import in_threads, stoppable

Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]

# Two weights are fitted, for which so many rows are enough.
BLEND_ROWS = 2**13
# Strength of the pull towards the weight of discriminant analysis, in rows.
PULL = 1e-3


@dataclass(frozen=True, eq=False)
class RowLists:
    """The candidate classes of each row and their path scores, its own class first, padded with -1.

    Complete lists have all classes, and no path scores.
    """

    classes: npt.NDArray[np.int32]
    path_scores: Single
    are_complete: bool = False

    @classmethod
    def of_all(cls, own: Index, n_classes: int) -> "RowLists":
        """Return complete lists."""
        classes = np.tile(np.arange(n_classes, dtype=np.int32), (len(own), 1))
        classes[np.arange(len(own)), own] = 0
        classes[:, 0] = own
        return cls(classes, np.zeros(classes.shape, dtype=np.float32), are_complete=True)

    @classmethod
    def of(cls, own: Index, finalists: npt.NDArray[np.int32], scores: Single, own_score: Array) -> "RowLists":
        """Put the own class in front of the finalists of each row."""
        n_rows, size = finalists.shape
        classes = np.full((n_rows, size + 1), -1, dtype=np.int32)
        path_scores = np.zeros((n_rows, size + 1), dtype=np.float32)
        classes[:, 0], path_scores[:, 0] = own, own_score
        is_rival = (finalists >= 0) & (finalists != own[:, None])
        row, place = np.nonzero(is_rival)
        to = 1 + (np.cumsum(is_rival, axis=1) - 1)[row, place]
        classes[row, to], path_scores[row, to] = finalists[row, place], scores[row, place]
        found = (finalists == own[:, None]) & (finalists >= 0)
        path_scores[found.any(axis=1), 0] = scores[found]
        return cls(classes, path_scores)


@dataclass(frozen=True, eq=False)
class SoftmaxTrainer:
    """Trains on lists, without rows of importance 0.

    ``order`` has the rows that count in an order that follows from their content.
    """

    Z: Single
    metric: ClassMetric
    lists: RowLists
    importance: Array
    order: Index
    cost: Array
    n_classes: int
    n_threads: int = 1

    @property
    def _has_class_of_several_rows(self) -> bool:
        return len(self.order) > len(np.unique(self.lists.classes[self.order, 0]))

    @classmethod
    def of(cls, training_set: LinearTrainingSet, lists: RowLists, importance: Array, order: Index) -> "SoftmaxTrainer":
        """Transform the rows of a training set to the metric of its classes."""
        own, training_set = lists.classes[:, 0].astype(np.int64), training_set.as_dense()
        metric = ClassMetric.of(training_set, own, importance)
        counted = order[importance[order] > 0.0]
        cost, sizes = 1.0 / training_set.ridge, (training_set.n_classes, training_set.n_threads)
        return cls(metric.rows(training_set), metric, lists, importance, counted, cost, *sizes)

    def train(self, cost_factor: float, tol: float, max_iter: int) -> tuple[list[NodeClassifier], float, float]:
        """Return the machine of each class, the weight of the path score, and the relative duality gap."""
        means, constants, scores = self._mean_scores
        mean_weight, path_weight = self._blend
        offsets = np.float32(mean_weight) * scores + np.float32(path_weight) * self.lists.path_scores
        weights = np.zeros(means.shape, dtype=np.float32)
        intercepts, gap = np.zeros(self.n_classes), 0.0
        # If each row is the only one of its class, its list comes from machines that have not seen the class.
        if cost_factor > 0.0 and (self.lists.are_complete or self._has_class_of_several_rows):
            listed, cost = self.lists.classes.copy(), cost_factor * self.cost
            with stoppable() as stop:
                _, gap = compiled.softmax_dual.solve(
                    self.Z, self.order, listed, offsets, cost, weights, intercepts, tol, max_iter, stop
                )
        back = (mean_weight * means + weights) @ self.metric.transform.T
        intercepts += mean_weight * constants - back @ self.metric.centre
        columns = np.arange(back.shape[1])
        machines: list[NodeClassifier] = [
            LinearClassifier(columns, w, float(b)) for w, b in zip(back, intercepts, strict=True)
        ]
        return machines, path_weight, float(gap)

    @cached_property
    def _mean_scores(self) -> tuple[Single, Array, Single]:
        """Return the class means, the constants of their scores, and the scores of discriminant analysis on all lists.

        Scores are log posterior probabilities times the variance of a class; a class without rows has half a one.
        """
        own, weight = self.lists.classes[:, 0].astype(np.int64), self.importance
        class_weight = np.bincount(own, weight, self.n_classes)
        means = sums_by_class(
            lambda piece: self.Z[piece] * weight[piece, None].astype(np.float32),
            pieces(np.flatnonzero(weight), self.Z),
            own,
            self.n_classes,
            self.n_threads,
        )
        centres = (means / np.where(class_weight > 0.0, class_weight, 1.0)[:, None]).astype(np.float32)
        log_prior = self.metric.variance * np.log(np.where(class_weight > 0.0, class_weight, 0.5) / weight.sum())
        constants = log_prior - 0.5 * np.einsum("ij,ij->i", centres, centres).astype(np.float64)
        scores, own_weight = np.zeros(self.lists.classes.shape, dtype=np.float32), np.minimum(1.0, weight)

        def fill(piece: Index) -> None:
            part = slice(piece[0], piece[-1] + 1)
            compiled.softmax_dual.mean_scores(
                self.Z[part],
                centres,
                constants,
                log_prior,
                self.metric.variance,
                self.lists.classes[part],
                own_weight[part],
                class_weight,
                scores[part],
            )

        in_threads(fill, pieces(np.arange(len(self.Z)), self.Z), self.n_threads)
        return centres, constants, scores

    @cached_property
    def _blend(self) -> tuple[float, float]:
        """Return the nonnegative weights of mean score and path score with the largest likelihood of the own classes.

        Rows that are the only ones of their class are not informative. If all are, there is no offset, unless lists
        leave classes out: then the nearest mean decides.
        """
        n_rows_of_class = np.bincount(self.lists.classes[self.order, 0], minlength=self.n_classes)
        rows = self.order[n_rows_of_class[self.lists.classes[self.order, 0]] > 1][:BLEND_ROWS]
        if len(rows) == 0:
            return 0.0 if self.lists.are_complete else 1.0, 0.0
        is_listed = self.lists.classes[rows] >= 0
        start = np.concatenate([[0], np.cumsum(is_listed.sum(axis=1))])
        scores = [score[rows][is_listed].astype(np.float64) for score in (self._mean_scores[2], self.lists.path_scores)]
        is_own = np.isin(np.arange(start[-1]), start[:-1])
        groups = ScoreGroups(start, np.column_stack(scores), is_own, self.importance[rows])
        usual = np.array([1.0 / self.metric.variance, 0.0])
        # Without rivals the likelihood is constant, and the weight stays that of discriminant analysis.
        pull = np.array([PULL / usual[0] ** 2, 0.0])
        found = groups.fit(usual, pull, np.array([True, not self.lists.are_complete]))
        return float(found[0]), float(found[1])
