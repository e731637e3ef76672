"""Tuning of a method on a setting, by cross-validation on the training rows of the first split.

All points of the grid are evaluated on the first fold; the best few of them, if they are close to the best one, on the
others. For MSM the best of those are then evaluated with the other balances. Ties go to the smaller eta, then the
smaller C, then the first balance.
"""

from collections.abc import Callable, Mapping
from itertools import product
from statistics import fmean

from margintree.experiments.methods import METHODS, READINGS
from margintree.experiments.protocol import Protocol

Parameters = tuple[tuple[str, float], ...]
# Maps parameters and some folds to the accuracies in them.
Validate = Callable[[Parameters, range], list[float]]


def tune(method: str, data_set: str, kernel: str, protocol: Protocol, validate: Validate) -> dict[Parameters, float]:
    """Return the accuracy of the points that were tried on all folds, the best point first."""
    folds = range(protocol.folds(data_set))
    first = {point: validate(point, folds[:1]) for point in grid(method, data_set, kernel, protocol)}
    threshold = max(values[0] for values in first.values()) - protocol.kept_within
    near = {point: values[0] for point, values in first.items() if values[0] >= threshold}
    found = {p: fmean(first[p] + validate(p, folds[1:])) for p in best_points(near, protocol.kept_points)}
    if METHODS[method].tunes_balance:
        for point, balance in product(best_points(found, protocol.balance_points), protocol.balances[1:]):
            other = (*point[:-1], ("balance", balance))
            found[other] = fmean(validate(other, folds))
    return {point: found[point] for point in best_points(found, len(found))}


def grid(method: str, data_set: str, kernel: str, protocol: Protocol) -> list[Parameters]:
    """Return the points of the grid, the smaller parameters first."""
    reading = READINGS.get(data_set)
    etas = (None,) if kernel == "linear" else (reading.etas if reading else ()) or protocol.etas
    base = (("balance", protocol.balances[0]),) if METHODS[method].tunes_balance else ()
    points = product(etas, protocol.costs)
    return [(("C", C), *((("gamma", eta),) if eta is not None else ()), *base) for eta, C in points]


def best_points(values: Mapping[Parameters, float], n: int) -> list[Parameters]:
    """Return the points of highest accuracy; the mapping's order, which is the grid's, breaks ties."""
    return sorted(values, key=lambda point: -values[point])[:n]
