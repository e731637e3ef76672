"""Explicit features of a polynomial kernel, so that linear solvers can train without a kernel matrix (Remark 2)."""

from math import comb
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import gammaln
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data


class PolynomialKernelFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Explicit features of the kernel (gamma x'y + coef0)^degree.

    The inner product of two transformed rows is their kernel value, so an estimator with ``kernel="linear"`` behind
    this transformer learns the same model as one with ``kernel="poly"``, and never stores a kernel matrix. It is
    worthwhile if there are fewer monomials than rows: n features have C(n + degree, degree) of them, or C(n + degree -
    1, degree) with ``coef0=0``.

    Parameters
    ----------
    degree : int, default=3
    gamma : float, default=1.0
    coef0 : float, default=0.0
        Must not be negative: such a kernel has no real features.
    max_features : int, default=20000
        ``fit`` raises an error if there would be more features.

    Attributes
    ----------
    n_output_features_ : int
        Number of monomials.
    scale_ : ndarray of shape (n_output_features,)
        Factor of each monomial.

    Examples
    --------
    >>> import numpy as np
    >>> from margintree import PolynomialKernelFeatures
    >>> X = np.array([[1.0, 2.0], [0.5, -1.0]])
    >>> Z = PolynomialKernelFeatures(degree=2, gamma=0.5, coef0=1.0).fit_transform(X)
    >>> Z.shape
    (2, 6)
    >>> np.allclose(Z @ Z.T, (0.5 * X @ X.T + 1.0) ** 2)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0.0, None, closed="neither")],
        "coef0": [Interval(Real, 0.0, None, closed="left")],
        "max_features": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 0.0, max_features: int = 20_000) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.max_features = max_features

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the monomials and compute their factors.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Only its number of columns matters.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._validate_params()
        n_features = validate_data(self, X, accept_sparse="csr").shape[1]
        # Without a constant all monomials have the full degree.
        n_output = comb(n_features + self.degree - (self.coef0 == 0.0), self.degree)
        if n_output > self.max_features:
            raise ValueError(
                f"A polynomial kernel of degree {self.degree} has {n_output} explicit features for rows of "
                f"{n_features}, but max_features is {self.max_features}. Raise it, lower the degree, drop "
                'columns, or use kernel="poly", which needs no explicit features.'
            )
        lowest = self.degree if self.coef0 == 0.0 else 0
        self._monomials = PolynomialFeatures((lowest, self.degree)).fit(np.empty((1, n_features)))
        powers = self._monomials.powers_
        total = powers.sum(axis=1)
        # (coef0 + sum_i gamma x_i y_i)^degree by the multinomial theorem; a square root for each of the two rows.
        rest = self.degree - total
        log_ways = gammaln(self.degree + 1) - gammaln(rest + 1) - gammaln(powers + 1).sum(axis=1)
        self.scale_ = np.sqrt(np.rint(np.exp(log_ways)) * float(self.coef0) ** rest * float(self.gamma) ** total)
        self.n_output_features_ = n_output
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64] | sp.csr_matrix:
        """Return the features; sparse rows stay sparse.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_output_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        monomials = self._monomials.transform(X)
        if sp.issparse(monomials):
            return sp.csr_matrix(monomials @ sp.diags(self.scale_))
        return np.asarray(monomials * self.scale_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
