"""What the knapsack promises: the cheapest labelling under the balance constraint, and never an empty side."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from margintree.compiled import knapsack

# As a node has it: rounding of sums of sample weights must not make a labelling infeasible.
BALANCE_SLACK = 1e-9
MANY_CELLS = 10_000_000
NO_UNITS = np.empty(0, dtype=np.int64)

balances = st.floats(0.0, 0.99)


def arrays(values: st.SearchStrategy[Any], n_classes: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """Return costs and sizes of the same length; whole costs make ties common."""
    costs = st.one_of(st.floats(-10.0, 10.0), st.integers(-3, 3).map(float))
    return n_classes.flatmap(
        lambda n: st.tuples(
            st.lists(costs, min_size=n, max_size=n).map(np.array), st.lists(values, min_size=n, max_size=n)
        )
    )


def with_integer_sizes(low: int, high: int, largest: int = 30) -> st.SearchStrategy[Any]:
    return arrays(st.integers(1, largest), st.integers(low, high))


def with_real_sizes(low: int, high: int) -> st.SearchStrategy[Any]:
    return arrays(st.floats(0.01, 50.0), st.integers(low, high))


def beta_of(sizes: npt.NDArray[np.float64], balance: float) -> float:
    return float(max(balance * sizes.sum(), sizes.max()) + BALANCE_SLACK * sizes.sum())


def cheapest_cost(costs: Any, sizes: Any, beta: float) -> float:
    labellings = np.array(list(itertools.product([-1.0, 1.0], repeat=len(costs))))
    feasible = np.abs(labellings @ sizes) <= beta
    return float((labellings @ costs)[feasible].min())


def check_feasible(labelling: Any, sizes: Any, beta: float) -> None:
    assert set(np.unique(labelling)) == {-1.0, 1.0}, "a side is empty"
    assert abs(labelling @ sizes) <= beta * (1 + 1e-12)


def reduced(sizes: Any) -> Any:
    integers = np.array(sizes, dtype=np.int64)
    return integers // np.gcd.reduce(integers)


@given(problem=with_integer_sizes(2, 9), balance=balances)
def test_enumeration_is_optimal(problem: Any, balance: float) -> None:
    costs, sizes = problem[0], np.array(problem[1], dtype=float)
    beta = beta_of(sizes, balance)
    labelling = knapsack.by_enumeration(costs, sizes, beta)
    check_feasible(labelling, sizes, beta)
    assert labelling @ costs == pytest.approx(cheapest_cost(costs, sizes, beta), abs=1e-9)


@given(problem=with_real_sizes(2, 9), balance=balances)
def test_enumeration_is_optimal_for_sizes_that_are_not_integers(problem: Any, balance: float) -> None:
    costs, sizes = problem[0], np.array(problem[1])
    beta = beta_of(sizes, balance)
    labelling = knapsack.by_enumeration(costs, sizes, beta)
    check_feasible(labelling, sizes, beta)
    assert labelling @ costs == pytest.approx(cheapest_cost(costs, sizes, beta), abs=1e-9)


@given(problem=with_integer_sizes(2, 10), balance=balances)
def test_dynamic_programming_is_optimal(problem: Any, balance: float) -> None:
    costs, units = problem[0], np.array(problem[1], dtype=np.int64)
    sizes = units.astype(float)
    beta = beta_of(sizes, balance)
    labelling = knapsack.by_dynamic_programming(costs, units, beta)
    check_feasible(labelling, sizes, beta)
    assert labelling @ costs == pytest.approx(cheapest_cost(costs, sizes, beta), abs=1e-9)


@given(problem=with_integer_sizes(2, 12), balance=balances, factor=st.sampled_from([1, 3, 7, 10]))
@settings(max_examples=150)
def test_cheapest_labelling_is_optimal_for_integer_sizes(problem: Any, balance: float, factor: int) -> None:
    costs, sizes = problem[0], factor * np.array(problem[1], dtype=float)
    beta = beta_of(sizes, balance)
    labelling = knapsack.cheapest_labelling(costs, sizes, reduced(sizes), beta, MANY_CELLS)
    check_feasible(labelling, sizes, beta)
    assert labelling @ costs == pytest.approx(cheapest_cost(costs, sizes, beta), abs=1e-9)


@given(problem=with_integer_sizes(11, 12), balance=st.floats(0.0, 0.2), lean=st.floats(0.5, 3.0))
@settings(max_examples=50)
def test_cheapest_labelling_is_optimal_beyond_enumeration(problem: Any, balance: float, lean: float) -> None:
    # Costs that lean to one side make the constraint bind, so that the table decides.
    costs, sizes = np.abs(problem[0]) + lean, np.array(problem[1], dtype=float)
    assert len(costs) > knapsack.TRY_ALL_UP_TO
    beta = beta_of(sizes, balance)
    labelling = knapsack.cheapest_labelling(costs, sizes, reduced(sizes), beta, MANY_CELLS)
    check_feasible(labelling, sizes, beta)
    assert labelling @ costs == pytest.approx(cheapest_cost(costs, sizes, beta), abs=1e-9)


@given(problem=with_real_sizes(2, 10), balance=balances)
def test_cheapest_labelling_is_optimal_for_a_few_classes_of_any_size(problem: Any, balance: float) -> None:
    costs, sizes = problem[0], np.array(problem[1])
    beta = beta_of(sizes, balance)
    labelling = knapsack.cheapest_labelling(costs, sizes, NO_UNITS, beta, MANY_CELLS)
    check_feasible(labelling, sizes, beta)
    assert labelling @ costs == pytest.approx(cheapest_cost(costs, sizes, beta), abs=1e-9)


@given(problem=with_real_sizes(11, 60), balance=balances)
def test_cheapest_labelling_is_feasible_for_many_classes_of_any_size(problem: Any, balance: float) -> None:
    costs, sizes = problem[0], np.array(problem[1])
    beta = beta_of(sizes, balance)
    check_feasible(knapsack.cheapest_labelling(costs, sizes, NO_UNITS, beta, MANY_CELLS), sizes, beta)


@given(problem=with_integer_sizes(11, 40), balance=balances)
def test_cheapest_labelling_is_feasible_where_the_table_would_be_too_large(problem: Any, balance: float) -> None:
    costs, sizes = problem[0], np.array(problem[1], dtype=float)
    beta = beta_of(sizes, balance)
    check_feasible(knapsack.cheapest_labelling(costs, sizes, reduced(sizes), beta, 10), sizes, beta)


@given(problem=with_integer_sizes(2, 30), balance=balances, side=st.sampled_from(["free", 1.0, -1.0]))
def test_repair_is_always_feasible(problem: Any, balance: float, side: Any) -> None:
    costs, sizes = problem[0], np.array(problem[1], dtype=float)
    beta = beta_of(sizes, balance)
    start = np.where(costs > 0.0, -1.0, 1.0) if side == "free" else np.full(len(costs), side)
    check_feasible(knapsack.by_repair(costs, sizes, beta, start), sizes, beta)


@given(problem=with_real_sizes(2, 30), balance=balances)
def test_repair_keeps_a_feasible_labelling_and_its_argument(problem: Any, balance: float) -> None:
    costs, sizes = problem[0], np.array(problem[1])
    beta = beta_of(sizes, balance)
    start = np.where(costs > 0.0, -1.0, 1.0)
    kept = start.copy()
    result = knapsack.by_repair(costs, sizes, beta, start)
    np.testing.assert_array_equal(start, kept)
    if abs(start @ sizes) <= beta:
        np.testing.assert_array_equal(result, start)


@given(problem=with_real_sizes(2, 30), balance=balances)
def test_repair_moves_no_class_that_could_have_stayed(problem: Any, balance: float) -> None:
    costs, sizes = problem[0], np.array(problem[1])
    beta = beta_of(sizes, balance)
    start = np.where(costs > 0.0, -1.0, 1.0)
    result = knapsack.by_repair(costs, sizes, beta, start)
    weight = result @ sizes
    for k in np.flatnonzero(result != start):
        assert abs(weight + 2.0 * start[k] * sizes[k]) > beta * (1 - 1e-12)


@given(n_classes=st.integers(2, 25), dominant=st.floats(1.0, 1000.0), seed=st.integers(0, 1000))
def test_no_side_is_empty_beside_a_dominant_class(n_classes: int, dominant: float, seed: int) -> None:
    sizes = np.ones(n_classes)
    sizes[0] = dominant * n_classes
    # Every class would rather be on the + side.
    costs = -np.random.default_rng(seed).uniform(0.1, 1.0, size=n_classes)
    beta = beta_of(sizes, 0.0)
    labelling = knapsack.cheapest_labelling(costs, sizes, NO_UNITS, beta, MANY_CELLS)
    check_feasible(labelling, sizes, beta)


@given(problem=with_integer_sizes(2, 9), balance=balances)
def test_unconstrained_optimum_is_taken_when_it_is_feasible(problem: Any, balance: float) -> None:
    costs, sizes = problem[0], np.array(problem[1], dtype=float)
    beta = beta_of(sizes, balance)
    free = np.where(costs > 0.0, -1.0, 1.0)
    assume(abs(free @ sizes) <= beta)
    labelling = knapsack.cheapest_labelling(costs, sizes, reduced(sizes), beta, MANY_CELLS)
    assert labelling @ costs == pytest.approx(-np.abs(costs).sum())
