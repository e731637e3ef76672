"""Decision values of kernel machines, without the code that predicts."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel


@pytest.fixture(scope="session")
def kernel_decisions():
    """Return the function that gives the values of all machines of an RBF ``KernelTree``, by scikit-learn's kernel."""

    def values(tree, X):
        gram = rbf_kernel(X, tree.vectors, tree.function.gamma) + tree.function.fit_intercept
        weights = np.zeros((len(tree.constants), gram.shape[1]))
        machine = np.repeat(np.arange(len(weights)), np.diff(tree.start))
        np.add.at(weights, (machine, tree.support), tree.coefficients)
        return gram @ weights.T + tree.constants

    return values
