"""From the values of an output code's machines to a distance from every class.

M is the code, one row per class and one column per machine, with entries -1, 0 and +1; f_j are the values of the
machines on a row of data and x_j their signs. The rules are those of Escalera, Pujol and Radeva, On the Decoding
Process in Ternary Error-Correcting Output Codes, 2010. The class at the smallest distance is predicted.
"""

import numpy as np
import numpy.typing as npt

from margintree.solvers.solution import Array

Code = npt.NDArray[np.int8]

# exp(-f) beyond this would leave the range of floats; a machine is as certain as it can be long before.
LARGEST_CERTAINTY = 300.0


def hamming(values: Array, code: Code) -> Array:
    """Return sum_j (1 - x_j M_kj) / 2; a 0 in the code, or a value of 0, counts one half.

    Examples
    --------
    >>> import numpy as np
    >>> from margintree.prediction.decoding import hamming
    >>> hamming(np.array([[2.0, -0.5]]), np.array([[1, 1], [-1, 0]], dtype=np.int8))
    array([[1. , 1.5]])
    """
    return np.asarray(0.5 * (code.shape[1] - np.sign(values) @ code.T))


def attenuated(values: Array, code: Code) -> Array:
    """Return the attenuated Euclidean distance, sqrt(sum_j |x_j| |M_kj| (x_j - M_kj)^2).

    A 0 in the code does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from margintree.prediction.decoding import attenuated
    >>> attenuated(np.array([[2.0, -0.5]]), np.array([[1, 1], [-1, 0], [0, -1]], dtype=np.int8))
    array([[2., 2., 0.]])
    """
    signs = np.sign(values)
    # With entries in {-1, 0, 1} the square is 1 + 1 - 2 x M wherever it counts.
    return np.asarray(np.sqrt(2.0 * (np.abs(signs) @ np.abs(code.T) - signs @ code.T)))


def loss_weighted(values: Array, code: Code, weights: Array) -> Array:
    """Return sum_j W_kj exp(-M_kj f_j): loss-weighted decoding with the exponential loss.

    ``weights`` come from ``loss_weights``.

    Examples
    --------
    >>> import numpy as np
    >>> from margintree.prediction.decoding import loss_weighted
    >>> code = np.array([[1, 1], [-1, 0]], dtype=np.int8)
    >>> loss_weighted(np.array([[2.0, -0.5]]), code, np.array([[0.5, 0.5], [1.0, 0.0]])).round(2)
    array([[0.89, 7.39]])
    """
    values = np.clip(values, -LARGEST_CERTAINTY, LARGEST_CERTAINTY)
    return np.asarray(np.exp(-values) @ (weights * (code > 0)).T + np.exp(values) @ (weights * (code < 0)).T)


def class_scores(values: Array, code: Code, weights: Array, rule: str) -> Array:
    """Return minus the distance from every class by the rule of that name.

    Two classes have one machine, whose value towards the second class is returned, one number per row.

    Examples
    --------
    >>> import numpy as np
    >>> from margintree.prediction.decoding import class_scores
    >>> code = np.array([[1, 1], [-1, 0], [0, -1]], dtype=np.int8)
    >>> class_scores(np.array([[2.0, -0.5]]), code, np.abs(code) / 2, "hamming")
    array([[-1. , -1.5, -0.5]])
    """
    if len(code) == 2:
        return np.asarray(values[:, 0] * code[1, 0])
    if rule == "loss_weighted":
        return -loss_weighted(values, code, weights)
    return -(hamming if rule == "hamming" else attenuated)(values, code)


def loss_weights(accuracy: Array) -> Array:
    """Return W: the training accuracy of every machine on every class, scaled so that the weights of a class sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from margintree.prediction.decoding import loss_weights
    >>> loss_weights(np.array([[0.9, 0.6], [0.0, 0.5]]))
    array([[0.6, 0.4],
           [0. , 1. ]])
    """
    return np.asarray(accuracy / accuracy.sum(axis=1, keepdims=True))
