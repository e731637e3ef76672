"""What searches over labellings promise: the largest z'Gz, climbs that never fall, and exact differences of losses."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree.compiled import knapsack, labellings

BALANCE_SLACK = 1e-9

seeds = st.integers(0, 100_000)
balances = st.floats(0.0, 0.99)


def random_matrix(seed: int, n_classes: int, rank: int, definite: bool) -> Any:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n_classes, rank)) * random.uniform(0.1, 3.0, size=(n_classes, 1))
    if definite:
        return vectors @ vectors.T
    signs = np.where(np.arange(rank) % 2 == 0, 1.0, -1.0)
    return (vectors * signs) @ vectors.T


def random_sizes(seed: int, n_classes: int, whole: bool) -> Any:
    random = np.random.default_rng(seed + 1)
    return random.integers(1, 30, size=n_classes).astype(float) if whole else random.uniform(0.01, 30.0, size=n_classes)


def beta_of(sizes: Any, balance: float) -> float:
    return float(max(balance * sizes.sum(), sizes.max()) + BALANCE_SLACK * sizes.sum())


def largest_by_brute_force(matrix: Any, sizes: Any, beta: float) -> float:
    candidates = np.array(list(itertools.product([-1.0, 1.0], repeat=len(sizes))))
    candidates = candidates[np.abs(candidates @ sizes) <= beta]
    return float(np.einsum("mk,kl,ml->m", candidates, matrix, candidates).max())


@given(
    seed=seeds,
    n_classes=st.integers(2, 10),
    rank=st.integers(1, 10),
    definite=st.booleans(),
    whole=st.booleans(),
    balance=balances,
)
@settings(max_examples=100)
def test_largest_quadratic_equals_brute_force(
    seed: int, n_classes: int, rank: int, definite: bool, whole: bool, balance: float
) -> None:
    matrix, sizes = random_matrix(seed, n_classes, rank, definite), random_sizes(seed, n_classes, whole)
    beta = beta_of(sizes, balance)
    labelling = labellings.largest_quadratic(matrix, sizes, beta)
    expected = largest_by_brute_force(matrix, sizes, beta)
    assert labelling @ matrix @ labelling == pytest.approx(expected, abs=1e-9 * np.abs(matrix).sum())
    assert abs(labelling @ sizes) <= beta * (1 + 1e-12)
    assert labelling[0] == 1.0
    assert labelling.min() == -1.0


def test_largest_quadratic_keeps_its_precision_over_sixteen_classes() -> None:
    matrix, sizes = random_matrix(5, 16, 16, True), random_sizes(5, 16, False)
    beta = beta_of(sizes, 0.1)
    labelling = labellings.largest_quadratic(matrix, sizes, beta)
    expected = largest_by_brute_force(matrix, sizes, beta)
    assert labelling @ matrix @ labelling == pytest.approx(expected, rel=1e-12)


@given(
    seed=seeds,
    n_classes=st.integers(2, 30),
    rank=st.integers(1, 12),
    definite=st.booleans(),
    whole=st.booleans(),
    balance=balances,
)
@settings(max_examples=100)
def test_climb_never_lowers_the_quadratic_form_and_stays_feasible(
    seed: int, n_classes: int, rank: int, definite: bool, whole: bool, balance: float
) -> None:
    matrix, sizes = random_matrix(seed, n_classes, rank, definite), random_sizes(seed, n_classes, whole)
    beta = beta_of(sizes, balance)
    direction = np.random.default_rng(seed + 2).normal(size=n_classes)
    start = knapsack.cheapest_labelling(direction, sizes, np.empty(0, dtype=np.int64), beta, 0)
    before = start @ matrix @ start
    end = labellings.climb_quadratic(matrix, sizes, beta, start.copy())
    assert set(np.unique(end)) == {-1.0, 1.0}
    assert abs(end @ sizes) <= beta * (1 + 1e-12)
    assert end @ matrix @ end >= before - 1e-9 * np.abs(matrix).sum()


@given(seed=seeds, n_classes=st.integers(2, 12), balance=balances)
@settings(max_examples=50)
def test_climb_ends_where_no_feasible_flip_or_swap_helps(seed: int, n_classes: int, balance: float) -> None:
    matrix, sizes = random_matrix(seed, n_classes, 6, True), random_sizes(seed, n_classes, False)
    beta = beta_of(sizes, balance)
    direction = np.random.default_rng(seed + 2).normal(size=n_classes)
    start = knapsack.cheapest_labelling(direction, sizes, np.empty(0, dtype=np.int64), beta, 0)
    end = labellings.climb_quadratic(matrix, sizes, beta, start)
    value = end @ matrix @ end
    flips = [(k,) for k in range(n_classes)]
    swaps = [(k, m) for k in range(n_classes) for m in range(k) if end[k] != end[m]]
    for moved in flips + swaps:
        other = end.copy()
        other[list(moved)] *= -1.0
        if abs(other @ sizes) <= beta * (1 - 1e-12):
            assert other @ matrix @ other <= value + 1e-9 * np.abs(matrix).sum()


def test_climb_swaps_where_balance_forbids_every_flip() -> None:
    # Equal classes, perfect balance: from {0, 1} | {2, 3} only a swap leads to the better {0, 2} | {1, 3}.
    vectors = np.array([1.0, -1.0, 1.0, -1.0])
    sizes, beta = np.ones(4), 0.5
    end = labellings.climb_quadratic(np.outer(vectors, vectors), sizes, beta, np.array([1.0, 1.0, -1.0, -1.0]))
    assert abs(end @ vectors) == 4.0


@given(seed=seeds, n_classes=st.integers(1, 6), scale=st.floats(0.1, 5.0))
@settings(max_examples=50)
def test_flip_costs_are_differences_of_losses(seed: int, n_classes: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 8, size=n_classes)
    class_start = np.concatenate([[0], np.cumsum(lengths)])
    decision = scale * random.normal(size=class_start[-1])
    ridge = random.uniform(0.01, 10.0, size=class_start[-1])

    def loss(k: int, side: float) -> float:
        rows = slice(class_start[k], class_start[k + 1])
        return float(0.5 * np.sum(np.maximum(0.0, 1.0 - side * decision[rows]) ** 2 / ridge[rows]))

    expected = [loss(k, 1.0) - loss(k, -1.0) for k in range(n_classes)]
    scale_of_losses = max(loss(k, side) for k in range(n_classes) for side in (1.0, -1.0))
    np.testing.assert_allclose(
        labellings.flip_costs(decision, ridge, class_start), expected, atol=1e-12 * (1.0 + scale_of_losses)
    )


def test_total_loss_is_linear_in_the_labelling_with_half_the_flip_costs(class_problem: Any) -> None:
    problem = class_problem(n_classes=5, weighted=True)
    decision = np.random.default_rng(0).normal(size=problem.n_rows)
    costs = labellings.flip_costs(decision, problem.ridge, problem.class_start)
    losses = {
        z: problem.primal(0.0, np.array(z)[problem.classes] * decision)
        for z in itertools.product([-1.0, 1.0], repeat=5)
    }
    middle = np.mean(list(losses.values()))
    for z, loss in losses.items():
        assert loss == pytest.approx(middle + 0.5 * np.array(z) @ costs, rel=1e-10)
