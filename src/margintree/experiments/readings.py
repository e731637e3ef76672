"""Other readings of the paper's experiment: what it does not say, and what would explain its figures.

A reading is a setting of its own, with the rows of a set of Table 1, the methods it concerns, and one thing changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import MaxAbsScaler

from margintree.experiments.methods import METHODS, PAPER

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
_ALL = (
    Reading("news20, scaled counts", "news20", "linear", ALGORITHM_1 + OTHERS, SCALED, scaling=MaxAbsScaler),
    Reading("satimage, η = 10, free bias", "satimage", "rbf", WITH_KERNELS, FREE_BIAS, (10.0,), True),
    Reading("satimage, η = 10", "satimage", "rbf", ALGORITHM_1, "η = 10, without bias", (10.0,)),
    Reading("vowel, heaviest plane", "vowel", "linear", PLANE, HEAVIEST),
    Reading("Caltech 101, heaviest plane", "caltech101", "linear", PLANE, HEAVIEST),
)

READINGS: dict[str, Reading] = {reading.name: reading for reading in _ALL}
