"""Small class problems in every layout that the solvers know, and the directory of real data sets."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import settings
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from margintree.prediction.weight_table import WeightTable
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_rows import KernelRows
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.linear_rows import NEWTON_FEATURES, LinearRows
from margintree.solvers.row_layout import IndexedRows

Array = npt.NDArray[np.float64]

# Tests run side by side, one process per core: more threads in each would only wait for each other.
threadpool_limits(1)

# The first call of a kernel may compile it, which takes seconds.
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


def linear_kernel(A: Any, B: Any) -> Array:
    return np.asarray(A @ B.T)


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """Rows sorted by class, with the values of the SVM problem in plain numpy."""

    features: Array
    class_start: npt.NDArray[np.int64]
    sample_weight: Array
    C: float

    @property
    def n_classes(self) -> int:
        return len(self.class_start) - 1

    @property
    def n_rows(self) -> int:
        return len(self.features)

    @property
    def classes(self) -> npt.NDArray[np.int64]:
        return np.repeat(np.arange(self.n_classes), np.diff(self.class_start))

    @property
    def ridge(self) -> Array:
        return 1.0 / (self.C * self.sample_weight)

    def with_constant_column(self) -> "ClassProblem":
        return replace(self, features=np.hstack([self.features, np.ones((self.n_rows, 1))]))

    def linear_rows(self, layout: str = "dense", seed: int = 0) -> LinearRows:
        """Return the rows as "dense", as "csr", or padded with zeros to "many columns", which may be "indexed".

        Dense rows with few columns may be finished by Newton's method, the others never are.
        """
        features: Any = self.features
        if layout == "csr":
            features = sp.csr_array(features)
        elif layout in ("many columns", "indexed"):
            features = np.pad(features, [(0, 0), (0, NEWTON_FEATURES + 1 - features.shape[1])])
        if layout == "indexed":
            # Other rows lie between them.
            place = np.random.default_rng(seed).permutation(2 * self.n_rows)[: self.n_rows]
            anywhere = np.full((2 * self.n_rows, features.shape[1]), 77.0)
            anywhere[place] = features
            features = IndexedRows(anywhere, place, has_constant=False, squared_norms=(anywhere**2).sum(axis=1))
        rows = LinearRows(features, np.arange(features.shape[1]), self.class_start, self.ridge, seed)
        assert sp.issparse(rows.features) == (layout == "csr"), "the test data are too dense to stay sparse"
        return rows

    def kernel_source(self, kernel: Any = "rbf", *, gamma: float = 0.2, cache_size: float = 100.0) -> KernelSource:
        return KernelSource(KernelFunction(kernel, gamma=gamma), self.features, cache_size)

    def kernel_rows(self, kernel: Any = "rbf", *, gamma: float = 0.2, cache_size: float = 100.0) -> KernelRows:
        """Return the rows behind a kernel; "linear" is x'y as a callable."""
        kernel = linear_kernel if kernel == "linear" else kernel
        source = self.kernel_source(kernel, gamma=gamma, cache_size=cache_size)
        return KernelRows(source, np.arange(self.n_rows), self.class_start, self.ridge, 0)

    def rbf_gram(self, gamma: float = 0.2) -> Array:
        squares = ((self.features[:, None, :] - self.features[None, :, :]) ** 2).sum(axis=2)
        return np.asarray(np.exp(-gamma * squares))

    def linear_gram(self) -> Array:
        return self.features @ self.features.T

    def signed_gram(self, gram: Array, planes: Array, mu: Array) -> Array:
        """Return sum_m mu_m K * z^m z^m' over the rows."""
        signs = planes[:, self.classes]
        return np.asarray(gram * np.einsum("m,mi,mj->ij", mu, signs, signs))

    def primal(self, squared_norm: float, signed: Array) -> float:
        """Return the primal value of a weight vector, from its norm and its signed decisions."""
        slack = np.maximum(0.0, 1.0 - signed)
        return float(0.5 * squared_norm + 0.5 * np.sum(slack**2 / self.ridge))

    def dual(self, alpha: Array, signed_gram: Array) -> float:
        return float(alpha.sum() - 0.5 * alpha @ signed_gram @ alpha - 0.5 * np.sum(self.ridge * alpha**2))

    def exact_dual(self, signed_gram: Array) -> tuple[Array, float]:
        """Solve the dual by an active set method: with Q = LL', it is min_{a >= 0} |L'a - inv(L) 1|^2."""
        lower = np.linalg.cholesky(signed_gram + np.diag(self.ridge))
        alpha, _ = nnls(lower.T, solve_triangular(lower, np.ones(self.n_rows), lower=True), maxiter=50 * self.n_rows)
        return alpha, self.dual(alpha, signed_gram)

    def weight_distance(self, objective: float, tol: float) -> float:
        """Return how far apart the weights of two solutions may lie: the primal is 1-strongly convex."""
        return float(2.0 * np.sqrt(2.0 * tol * objective))

    def decision_distance(self, objective: float, tol: float) -> float:
        """Return how far apart their decision values may lie, for |phi(x)| = |x| and for |phi(x)| = 1."""
        return self.weight_distance(objective, tol) * max(1.0, float(np.linalg.norm(self.features, axis=1).max()))

    def alpha_distance(self, objective: float, tol: float) -> float:
        """Return how far apart their dual variables may lie: the dual is min(r)-strongly concave."""
        return self.weight_distance(objective, tol) / float(np.sqrt(self.ridge.min()))


ProblemFactory = Callable[..., ClassProblem]


def make_problem(
    *,
    n_classes: int = 4,
    rows_per_class: int = 15,
    n_features: int = 60,
    density: float = 0.06,
    spread: float = 1.0,
    C: float = 1.0,
    weighted: bool = False,
    seed: int = 0,
) -> ClassProblem:
    """Draw classes of different sizes; at most ``density`` of the values are not zero."""
    random = np.random.default_rng(seed)
    sizes = rows_per_class + random.integers(0, rows_per_class // 2 + 1, size=n_classes)
    class_start = np.concatenate([[0], np.cumsum(sizes)])
    n_rows = int(class_start[-1])
    per_row = max(1, int(density * n_features))
    # Classes share half of their columns, so that they overlap.
    pools = [random.permutation(n_features)[: max(per_row, n_features // 2)] for _ in range(n_classes)]
    centres = spread * random.normal(size=(n_classes, n_features))
    features = np.zeros((n_rows, n_features))
    for row, label in enumerate(np.repeat(np.arange(n_classes), sizes)):
        columns = random.choice(pools[label], size=per_row, replace=False)
        features[row, columns] = centres[label, columns] + random.normal(size=per_row)
    weight = random.uniform(0.2, 3.0, size=n_rows) if weighted else np.ones(n_rows)
    return ClassProblem(features, class_start, weight, C)


@pytest.fixture(scope="session")
def class_problem() -> ProblemFactory:
    """Return the factory of class problems."""
    return make_problem


@pytest.fixture(scope="session")
def compact_problem() -> ProblemFactory:
    """Return the factory of dense problems with few features, as a kernel wants them."""

    def make(**options: Any) -> ClassProblem:
        return make_problem(**{"n_features": 5, "density": 1.0, **options})

    return make


def dense_weights(table: WeightTable) -> Array:
    """Return the weights of all machines as rows of a matrix, read cell by cell as their layout says."""
    weights = np.zeros((len(table.scale), table.n_features))
    for machine, n in enumerate(table.n_weights.tolist()):
        cells = table.cells[int(table.start[machine]) : int(table.start[machine + 1])]
        if n < 0:
            weights[machine] = cells.view(np.float32)
            continue
        pairs = cells[2 * ((n + 3) // 4) :].reshape(-1, 2)
        used = pairs[pairs[:, 0] != 0xFFFFFFFF]
        weights[machine, used[:, 0]] = np.ascontiguousarray(used[:, 1]).view(np.float32)
    return table.scale[:, None] * weights


@pytest.fixture(scope="session")
def weights_of() -> Callable[[WeightTable], Array]:
    """Return the function that spells a table of weights out."""
    return dense_weights


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a headless Chromium."""
    pytest.importorskip("selenium.webdriver", reason="the page test needs selenium")
    from browser import browser as chromium

    with ExitStack() as stack:
        try:
            started = stack.enter_context(chromium())
        except SystemExit as missing:
            pytest.skip(f"the page test needs a browser. {missing}")
        yield started


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """Return the directory of real data sets in LIBSVM format."""
    value = os.environ.get("MARGINTREE_DATA")
    if not value:
        pytest.skip("set MARGINTREE_DATA to a directory with data sets in LIBSVM format (NAME.bz2) to run this test")
    directory = Path(value)
    if not directory.is_dir():
        pytest.fail(f"MARGINTREE_DATA is {value!r}, which is not a directory")
    return directory
