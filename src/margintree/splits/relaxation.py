"""The paper's convex relaxation: cutting planes, multiple kernel learning, rounding (section 3.2).

Exchanging min over labellings and max over dual variables in (6) gives a lower bound, the saddle
problem (7), whose inner minimum runs over all labellings. Cutting planes keep a small set of them: solve
the multiple kernel problem over the set, add the labelling that its dual variables violate most, repeat.
"""

from dataclasses import dataclass, replace

import numpy as np

from margintree.solvers.multiple_kernel import MKL_METHODS, MultipleKernelSolution
from margintree.solvers.solution import Array
from margintree.splits.bounds import conclude, lower_bound
from margintree.splits.node import NodeProblem, SplitResult, require_positive
from margintree.splits.oracles import ORACLES
from margintree.splits.rounding import balanced_kruskal_cut, heaviest_plane, kruskal_cut

ROUNDINGS = ("best", "kruskal", "balanced_kruskal", "heaviest_plane")
CHOICES = {"oracle": tuple(ORACLES), "mkl": tuple(MKL_METHODS), "rounding": ROUNDINGS}


@dataclass(frozen=True, eq=False)
class Relaxation:
    """What the cutting planes found.

    ``restricted_values`` has one value per round: the multiple kernel problem over the planes so far.
    ``cutting_plane_gap`` is (last restricted value - lower_bound) / last restricted value.
    """

    planes: Array
    mu: Array
    restricted_values: tuple[float, ...]
    mkl_gap: float
    lower_bound: float
    lower_bound_is_exact: bool

    @property
    def cutting_plane_gap(self) -> float:
        """Relative gap between the planes found and all planes."""
        last = self.restricted_values[-1]
        return max(0.0, (last - self.lower_bound) / last)

    def added_to(self, result: SplitResult) -> SplitResult:
        """Return the result with the bounds of the relaxation added."""
        return replace(
            result,
            lower_bound=max(result.lower_bound, self.lower_bound),
            restricted_value=self.restricted_values[-1],
            n_planes=len(self.planes),
        )


@dataclass(frozen=True)
class RelaxationSplit:
    """Split by the convex relaxation.

    Read more in the :doc:`user guide </splits/relaxation>`.

    Parameters
    ----------
    oracle : {"gram", "linf"}, default="gram"
        How the most violated labelling is found; "linf" is the paper's.
    mkl : {"closed_form", "simplemkl"}, default="closed_form"
        How the weights of the planes are learned; "simplemkl" is the paper's.
    rounding : {"best", "kruskal", "balanced_kruskal", "heaviest_plane"}, default="best"
        "best" solves the SVM of every plane with weight and of the Kruskal cut, and takes the lowest
        feasible one. "kruskal" is the paper's: it takes the cut as it is, balanced or not. "balanced_kruskal" is
        another reading of the paper: it cuts the spanning tree at the weakest edge whose cut meets the balance
        constraint. "heaviest_plane" takes the plane with the largest weight, which always meets it.
    max_planes : int, default=50
        Maximum number of cutting planes.
    tol : float, default=1e-2
        Relative gap of the multiple kernel problem, and the relative violation at which no more planes are added.
    max_mkl_iter : int, default=50
        Updates of the weights per round.
    svm_max_iter : int, default=100
        Passes over the rows for each SVM of the multiple kernel problem. Each starts from the previous one, so a hard
        problem is continued by the next SVM.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margintree import MarginTreeClassifier
    >>> from margintree.splits import RelaxationSplit
    >>> X, y = load_iris(return_X_y=True)
    >>> MarginTreeClassifier(split=RelaxationSplit(), random_state=0).fit(X, y).tree_.to_nested()
    (0, (1, 2))
    """

    oracle: str = "gram"
    mkl: str = "closed_form"
    rounding: str = "best"
    max_planes: int = 50
    tol: float = 1e-2
    max_mkl_iter: int = 50
    svm_max_iter: int = 100

    def __post_init__(self) -> None:
        require_positive(self, "max_planes", "max_mkl_iter", "svm_max_iter")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"The {name!r} parameter of RelaxationSplit must be one of {allowed}. "
                    f"Got {getattr(self, name)!r} instead."
                )

    def relax(self, node: NodeProblem) -> Relaxation:
        """Run the cutting planes, Algorithm 1 steps 3-6."""
        oracle, mkl = ORACLES[self.oracle], MKL_METHODS[self.mkl]
        alpha = np.full(node.rows.n_rows, 1.0 / node.rows.n_rows)
        gram = node.rows.class_gram(alpha)
        bound, exact = lower_bound(node, alpha, gram)
        planes = oracle(node, alpha, gram)[None, :]
        mu = np.ones(1)
        values: list[float] = []
        while True:
            solved: MultipleKernelSolution = mkl(
                node.rows,
                planes,
                mu,
                None if not values else alpha,
                tol=self.tol,
                max_iter=self.max_mkl_iter,
                svm_max_iter=self.svm_max_iter,
            )
            node.n_iter += solved.n_iter
            mu, alpha, gram = solved.mu, solved.svm.alpha, solved.class_gram
            values.append(solved.value)
            bound = max(bound, lower_bound(node, alpha, gram)[0])
            labelling = oracle(node, alpha, gram)
            held = np.einsum("mk,kl,ml->m", planes, gram, planes, optimize=True).max()
            violation = 0.5 * (labelling @ gram @ labelling - held)
            known = bool((planes == labelling).all(axis=1).any())
            if known or violation <= self.tol * solved.value or len(planes) == self.max_planes:
                return Relaxation(planes, mu, tuple(values), solved.gap, bound, exact)
            # The closed form never revives a weight of zero: every plane starts a round positive.
            planes = np.vstack([planes, labelling])
            mu = np.append(mu, 1.0 / len(planes))
            mu = np.maximum(mu, 1e-3 / len(planes)) if self.mkl == "closed_form" else mu
            mu = mu / mu.sum()

    def divide(self, node: NodeProblem) -> SplitResult:
        """Return the rounded solution of the relaxation, Algorithm 1 steps 3-8."""
        relaxation = self.relax(node)
        return relaxation.added_to(conclude(node, self._rounded(node, relaxation)))

    def _rounded(self, node: NodeProblem, relaxation: Relaxation) -> Array:
        planes, mu = relaxation.planes, relaxation.mu
        if self.rounding == "heaviest_plane":
            return heaviest_plane(planes, mu)
        if self.rounding == "balanced_kruskal":
            return balanced_kruskal_cut(node, planes, mu)
        cut = kruskal_cut(planes, mu)
        return cut if self.rounding == "kruskal" else self._best(node, relaxation, cut)

    def _best(self, node: NodeProblem, relaxation: Relaxation, cut: Array) -> Array:
        candidates = list(relaxation.planes[relaxation.mu > 0.0])
        if node.is_feasible(cut):
            candidates.append(cut)
        best, best_value = candidates[0], np.inf
        solution = None
        for candidate in candidates:
            solution = node.solve(candidate, cutoff=best_value, start=solution)
            if solution.objective < best_value:
                best, best_value = candidate, solution.objective
        return np.asarray(best)
