"""Best-first search over the labellings, pruned by weak duality.

Any dual point a bounds P of every labelling at once: with G its class Gram matrix,

    P(z) >= (1'a)^2 / (2 (z'Gz + sum_j r_j a_j^2)),

which costs c*^2 per labelling and no SVM. Each SVM that is solved therefore raises the bounds of all
other labellings. The next one to solve is always the one with the lowest bound, started from the dual point that gave
the bound, and abandoned as soon as its dual value exceeds the best objective found. When no bound lies below that
objective the search has proved its optimum, to its tolerances.

If a node has too many classes to list its labellings, the search runs over the neighbours of the best labelling so far;
if even those are too many, alternation is used instead.
"""

from dataclasses import dataclass, field

import numpy as np

from margintree.solvers.solution import Array, SVMSolution
from margintree.splits.alternating import AlternatingSplit
from margintree.splits.bounds import ENUMERATE_UP_TO, DualPoint, conclude
from margintree.splits.exhaustive import all_labellings
from margintree.splits.neighbourhood import improve
from margintree.splits.node import NodeProblem, SplitResult, canonical, require_positive
from margintree.splits.seeds import mean_seeds

# Nodes with a smaller share of all rows search their lists with less patience, but never with less than this.
FULL_PATIENCE_SHARE = 0.1
LEAST_PATIENCE = 2


@dataclass(frozen=True)
class BestFirstSplit:
    """Best-first search, pruned by weak duality.

    Read more in the :doc:`user guide </splits/best_first>`.

    Parameters
    ----------
    list_up_to : int, default=11
        Largest number of classes for which all labellings of a node are listed.
    neighbours_up_to : int, default=150
        Largest number of classes for which the neighbours of a labelling are searched.
    patience : int or None, default=25
        The search ends after this many SVMs in a row without improvement. In a search of neighbours it is scaled by the
        node's share of the rows, so that every level of the tree costs the same; in a search of a list it is smaller at
        nodes with fewer than a tenth of all rows. With None, a list is searched until the optimum is proved.
    prove_up_to : int, default=10
        Largest number of classes for which a list is searched until its optimum is proved, at nodes with at least a
        tenth of all rows.
    n_directions : int, default=1
        Principal directions of the class means that give the first labellings of a list, in addition to balanced
        2-means.
    search_tol : float, default=5e-3
        Relative duality gap of the SVMs during the search.
    slack : float, default=2e-3
        A labelling is pruned if its bound is within this relative distance of the best objective. An optimum is proved
        to within this and ``search_tol``.
    larger : AlternatingSplit
        Gives the start of a search of neighbours, and splits nodes with more classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import BestFirstSplit
    >>> X, y = load_iris(return_X_y=True)
    >>> MarginTreeClassifier(split=BestFirstSplit(patience=None), random_state=0).fit(X, y).tree_.to_nested()
    (0, (1, 2))
    """

    list_up_to: int = 11
    neighbours_up_to: int = 150
    patience: int | None = 25
    prove_up_to: int = 10
    n_directions: int = 1
    search_tol: float = 5e-3
    slack: float = 2e-3
    larger: AlternatingSplit = field(default_factory=lambda: AlternatingSplit(n_directions=2, search_tol=5e-3))

    def __post_init__(self) -> None:
        require_positive(self, "n_directions", *(() if self.patience is None else ("patience",)))
        if not 3 <= self.list_up_to <= ENUMERATE_UP_TO:
            raise ValueError(
                f"The 'list_up_to' parameter of BestFirstSplit must lie between 3 and {ENUMERATE_UP_TO}. "
                f"Got {self.list_up_to} instead."
            )

    def divide(self, node: NodeProblem) -> SplitResult:
        """Return the best labelling found."""
        tol = max(self.search_tol, node.tol)
        is_listed = node.n_classes <= self.list_up_to
        # With many classes there are many rows, and a few principal axes are enough to compare labellings.
        search = node.for_search(all_coordinates=is_listed)
        if is_listed:
            listed = self._search_list(search, tol)
            if search is node:
                return listed.result()
            best = listed.best_found
        else:
            best = self.larger.best_end(search)
            patience = node.n_classes**2 if self.patience is None else round(self.patience * node.share)
            if node.n_classes <= self.neighbours_up_to and patience > 0:
                best = improve(search, best, tol=tol, slack=self.slack, patience=patience)
        if search is node:
            return conclude(node, best.labelling, start=best)
        node.n_iter += search.n_iter
        return conclude(node, best.labelling)

    def _search_list(self, node: NodeProblem, tol: float) -> "_ListSearch":
        search = _ListSearch(node, tol)
        patience = self._patience_for_list(node)
        # Three classes or fewer have no more labellings than seeds.
        if node.n_classes > 3:
            for seed in mean_seeds(node, self.n_directions):
                search.follow(seed)
        while search.is_open.any() and (patience is None or search.waited < patience):
            index = search.lowest()
            if search.best is not None and search.bounds[index] >= (1.0 - self.slack) * search.best.objective:
                break
            search.solve(index)
        return search

    def _patience_for_list(self, node: NodeProblem) -> int | None:
        if node.share >= FULL_PATIENCE_SHARE:
            return None if node.n_classes <= self.prove_up_to else self.patience
        if self.patience is None:
            return None
        return max(min(LEAST_PATIENCE, self.patience), round(self.patience * node.share / FULL_PATIENCE_SHARE))


class _ListSearch:
    """Bounds on all labellings, and the solutions behind them."""

    def __init__(self, node: NodeProblem, tol: float) -> None:
        self.node, self.tol = node, tol
        labellings = all_labellings(node.n_classes)
        self.labellings = labellings[np.abs(labellings @ node.sizes) <= node.beta]
        self.index = {z.tobytes(): i for i, z in enumerate(self.labellings)}
        self.bounds = np.zeros(len(self.labellings))
        self.source = np.full(len(self.labellings), -1)
        self.is_open = np.ones(len(self.labellings), dtype=bool)
        self.solutions: list[SVMSolution] = []
        self.best: SVMSolution | None = None
        self.waited = 0

    def lowest(self) -> int:
        """Return the labelling with the lowest bound among those not yet solved."""
        return int(np.argmin(np.where(self.is_open, self.bounds, np.inf)))

    def follow(self, seed: Array) -> None:
        """Alternate from a seed until it meets a labelling that was solved before."""
        index = self.index[canonical(seed).tobytes()]
        while self.is_open[index]:
            solution = self.solve(index)
            moved = self.node.cheapest_labelling(self.node.flip_costs(solution))
            index = self.index[canonical(moved).tobytes()]

    def solve(self, index: int) -> SVMSolution:
        """Solve one labelling and raise the bounds of the others."""
        cutoff = np.inf if self.best is None else self.best.objective
        start = self.solutions[self.source[index]] if self.source[index] >= 0 else None
        solution = self.node.solve(self.labellings[index], tol=self.tol, cutoff=cutoff, start=start)
        self.is_open[index] = False
        self.waited += 1
        if self.best is None or solution.objective < self.best.objective:
            self.best, self.waited = solution, 0
        self._raise_bounds(solution.alpha)
        self.solutions.append(solution)
        return solution

    def _raise_bounds(self, alpha: Array) -> None:
        gram = self.node.rows.class_gram(alpha)
        squared_norms = ((self.labellings @ gram) * self.labellings).sum(axis=1)
        bounds = DualPoint(self.node, alpha, gram).bounds(squared_norms)
        raised = bounds > self.bounds
        self.bounds[raised] = bounds[raised]
        self.source[raised] = len(self.solutions)

    @property
    def best_found(self) -> SVMSolution:
        """The lowest solution of all."""
        assert self.best is not None
        return self.best

    def result(self) -> SplitResult:
        """Solve the best labelling to the node's tolerance."""
        best = self.best_found
        final = self.node.finish(best.labelling, best)
        self._raise_bounds(final.alpha)
        return SplitResult(best.labelling, final, float(self.bounds.min()), True)
