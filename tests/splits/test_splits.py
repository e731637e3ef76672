"""What every split promises, and what each one promises beyond that."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet
from margintree.splits import (
    SPLITS,
    AlternatingSplit,
    BestFirstSplit,
    ExhaustiveSplit,
    NodeProblem,
    RelaxationSplit,
)
from margintree.splits.bounds import lower_bound
from margintree.splits.exhaustive import all_labellings
from margintree.splits.node import canonical, integer_units
from margintree.splits.rounding import kruskal_cut

KINDS = ["linear", "rbf"]


def make_node(kind, n_classes, per_class=8, n_features=4, *, seed=0, balance=0.5, C=10.0, spread=0.7, tol=1e-4):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(max(1, per_class // 2), per_class + 1, n_classes)
    start = np.concatenate([[0], np.cumsum(sizes)])
    X = np.repeat(rng.standard_normal((n_classes, n_features)), sizes, axis=0)
    X = X + spread * rng.standard_normal(X.shape)
    weight = np.ones(len(X))
    if kind == "linear":
        data = LinearTrainingSet(X, start, weight, C * weight, fit_intercept=True)
    else:
        function = KernelFunction(kind, gamma=0.3, fit_intercept=True)
        data = KernelTrainingSet(KernelSource(function, X, 100.0), start, weight, C * weight)
    rows = data.node_rows(np.arange(n_classes), 1)
    return NodeProblem(rows, data.sizes, balance=balance, tol=tol, max_iter=5000, seed=seed)


def brute_force(node):
    """The lowest P over all feasible labellings, each SVM solved from nothing with L-BFGS-B on the primal."""
    values = {}
    for signs in itertools.product((1.0, -1.0), repeat=node.n_classes - 1):
        labelling = np.array((1.0, *signs))
        if abs(labelling @ node.sizes) <= node.beta and (labelling < 0).any():
            values[labelling.tobytes()] = primal_optimum(node, labelling)
    return values


def primal_optimum(node, labelling):
    """P(z) by Newton steps on the representer coefficients, independent of the library's solvers."""
    gram = (
        node.rows.features @ node.rows.features.T
        if hasattr(node.rows, "features")
        else node.rows.source.block(node.rows.row_index, node.rows.row_index)
    )
    signs = labelling[node.rows.classes]
    beta = np.zeros(len(signs))
    for _ in range(100):
        f = gram @ beta
        active = signs * f < 1.0
        system = gram[np.ix_(active, active)] + np.diag(node.rows.ridge[active])
        new = np.zeros_like(beta)
        new[active] = np.linalg.solve(system, signs[active])
        if np.allclose(new, beta, rtol=1e-12, atol=1e-14):
            break

        def value(b):
            f = gram @ b
            slack = np.maximum(0.0, 1.0 - signs * f)
            return 0.5 * b @ f + 0.5 * slack @ (slack / node.rows.ridge)

        step = 1.0
        while value(beta + step * (new - beta)) > value(beta) and step > 1e-10:
            step /= 2
        beta = beta + step * (new - beta)
    return value(beta)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_exhaustive_split_agrees_with_brute_force(kind, seed):
    node = make_node(kind, 5, seed=seed)
    result = ExhaustiveSplit().divide(node)
    values = brute_force(node)
    assert result.solution.objective == pytest.approx(min(values.values()), rel=1e-3)
    assert values[result.labelling.tobytes()] == pytest.approx(min(values.values()), rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_exhaustive_split_by_margin_takes_the_smallest_norm_and_no_balance(kind):
    node = make_node(kind, 4, balance=0.0, tol=1e-6)
    result = ExhaustiveSplit(criterion="margin").divide(node)
    norms = {z.tobytes(): node.solve(z).squared_norm for z in all_labellings(4)}
    assert result.solution.squared_norm == pytest.approx(min(norms.values()), rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("balance", [0.1, 0.5, 0.9])
def test_best_first_without_patience_proves_the_exhaustive_optimum(kind, balance):
    node = make_node(kind, 7, balance=balance)
    optimum = ExhaustiveSplit().divide(node).solution.objective
    found = BestFirstSplit(patience=None).divide(node)
    assert found.solution.objective <= optimum * 1.005


@pytest.mark.parametrize("kind", KINDS)
def test_best_first_proves_its_optimum_up_to_ten_classes(kind):
    node = make_node(kind, 10, spread=2.0)
    proved, patient = BestFirstSplit().divide(node), BestFirstSplit(prove_up_to=9, patience=2).divide(node)
    assert proved.lower_bound >= 0.99 * proved.solution.objective
    assert patient.lower_bound < 0.9 * patient.solution.objective


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in SPLITS if name != "paper"])
@pytest.mark.parametrize("balance", [0.0, 0.4])
def test_a_split_is_feasible_and_leaves_no_side_empty(kind, name, balance):
    node = make_node(kind, 7, balance=balance)
    result = SPLITS[name].divide(node)
    assert set(np.unique(result.labelling)) == {-1.0, 1.0}
    assert result.labelling[0] == 1.0
    assert node.is_feasible(result.labelling)
    assert result.solution.duality_gap <= node.tol


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPLITS)
def test_lower_bound_lies_below_every_feasible_labelling(kind, name):
    node = make_node(kind, 6)
    result = SPLITS[name].divide(node)
    assert result.lower_bound_is_exact
    assert 0.0 < result.lower_bound <= min(brute_force(node).values()) * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["best_first", "alternating", "relaxation", "paper", "random", "centroid"])
def test_lower_bound_lies_below_random_labellings_of_a_large_node(kind, name):
    node = make_node(kind, 20, per_class=5)
    result = SPLITS[name].divide(node)
    assert not result.lower_bound_is_exact
    rng = np.random.default_rng(0)
    for _ in range(50):
        labelling = node.cheapest_labelling(rng.standard_normal(20))
        assert result.lower_bound <= node.solve(labelling).objective


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_any_dual_point_bounds_all_labellings(seed):
    node = make_node("linear", 5, per_class=4, seed=seed)
    alpha = np.random.default_rng(seed).exponential(size=node.rows.n_rows)
    bound, exact = lower_bound(node, alpha)
    assert exact
    for z in all_labellings(5):
        if node.is_feasible(z):
            assert bound <= node.solve(z).objective * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_rises_during_alternation(kind, seed):
    node = make_node(kind, 9, seed=seed, spread=1.5)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        start = canonical(node.cheapest_labelling(rng.standard_normal(9)))
        path = AlternatingSplit(search_tol=1e-6).descend(node, start)
        values = [solution.objective for solution in path]
        assert values == sorted(values, reverse=True)
        assert all(node.is_feasible(solution.labelling) for solution in path)


def test_alternation_moves_at_least_once_from_some_start():
    node = make_node("linear", 9, seed=1, spread=0.3)
    rng = np.random.default_rng(0)
    starts = [canonical(node.cheapest_labelling(rng.standard_normal(9))) for _ in range(10)]
    assert any(len(AlternatingSplit().descend(node, start)) > 1 for start in starts)


@pytest.mark.parametrize("kind", KINDS)
def test_alternation_from_the_planes_is_no_worse_than_without_them(kind):
    node = make_node(kind, 8, spread=1.2)
    plain = AlternatingSplit().divide(node)
    with_planes = AlternatingSplit(relaxation=RelaxationSplit()).divide(node)
    assert with_planes.solution.objective <= plain.solution.objective * (1 + 1e-3)
    assert with_planes.n_planes > 0


@pytest.mark.parametrize("oracle", ["gram", "linf"])
@pytest.mark.parametrize("mkl", ["simplemkl", "closed_form"])
@pytest.mark.parametrize("kind", KINDS)
def test_restricted_value_falls_as_planes_are_added(kind, oracle, mkl):
    node = make_node(kind, 7)
    relaxation = RelaxationSplit(oracle=oracle, mkl=mkl, tol=1e-2, max_mkl_iter=300).relax(node)
    values = np.array(relaxation.restricted_values)
    assert len(values) == len(relaxation.planes)
    # Each value is exact to the gap of its multiple kernel problem.
    assert (values[1:] <= values[:-1] * (1 + 1e-2)).all()
    assert values[-1] < values[0] or len(values) == 1
    assert relaxation.mkl_gap <= 1e-2
    assert relaxation.lower_bound <= values[-1]
    assert relaxation.mu.sum() == pytest.approx(1.0)
    assert (relaxation.mu >= 0.0).all()
    assert all(node.is_feasible(z) for z in relaxation.planes)
    assert len({z.tobytes() for z in relaxation.planes}) == len(relaxation.planes)


@pytest.mark.parametrize("mkl", ["simplemkl", "closed_form"])
def test_exact_oracle_closes_the_cutting_plane_gap(mkl):
    node = make_node("rbf", 6)
    relaxation = RelaxationSplit(oracle="gram", mkl=mkl, tol=1e-3, max_mkl_iter=500).relax(node)
    assert relaxation.cutting_plane_gap < 5e-3


@pytest.mark.parametrize("oracle", ["gram", "linf"])
def test_linear_and_kernel_relaxation_have_the_same_values(oracle):
    linear = make_node("linear", 6)
    X = linear.rows.features[:, :-1]
    function = KernelFunction(lambda A, B: A @ B.T, fit_intercept=True)
    start = linear.rows.class_start
    weight = np.ones(len(X))
    data = KernelTrainingSet(KernelSource(function, X, 100.0), start, weight, 10.0 * weight)
    rows = data.node_rows(np.arange(6), 1)
    kernel = NodeProblem(rows, data.sizes, balance=0.5, tol=1e-4, max_iter=5000, seed=0)
    split = RelaxationSplit(oracle=oracle, tol=1e-5, max_mkl_iter=500)
    by_linear, by_kernel = split.relax(linear), split.relax(kernel)
    if oracle == "gram":
        assert by_linear.restricted_values[-1] == pytest.approx(by_kernel.restricted_values[-1], rel=1e-4)
        assert by_linear.lower_bound == pytest.approx(by_kernel.lower_bound, rel=1e-3)
    else:
        # The coordinates differ (features, eigenvectors), so the planes do; each set's value is still
        # that of the other solver on the same planes.
        for relaxation in (by_linear, by_kernel):
            values = [
                node.rows.solve_planes(relaxation.planes, relaxation.mu, tol=1e-7, max_iter=20000).objective
                for node in (linear, kernel)
            ]
            assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_best_rounding_is_never_worse_than_any_plane_with_weight():
    node = make_node("rbf", 8, spread=1.0)
    split = RelaxationSplit()
    relaxation = split.relax(node)
    best = split.divide(node).solution.objective
    for plane in relaxation.planes[relaxation.mu > 0]:
        assert best <= node.solve(plane).objective * (1 + 1e-3)


def test_kruskal_cut_is_the_maximum_spanning_tree_without_its_weakest_edge():
    rng = np.random.default_rng(0)
    for _ in range(20):
        planes = np.where(rng.random((6, 7)) < 0.5, 1.0, -1.0)
        mu = rng.dirichlet(np.ones(6))
        cut = kruskal_cut(planes, mu)
        affinity = (planes.T * mu) @ planes
        across = affinity[np.ix_(cut > 0, cut < 0)].max()
        # Among all cuts, the one whose strongest crossing edge is weakest.
        best = min(affinity[np.ix_(z > 0, z < 0)].max() for z in all_labellings(7))
        assert across == pytest.approx(best)


def test_paper_split_may_break_the_balance_and_says_so():
    broken = 0
    for seed in range(12):
        node = make_node("rbf", 7, seed=seed, balance=0.1, spread=1.0)
        result = SPLITS["paper"].divide(node)
        broken += not node.is_feasible(result.labelling)
        assert node.imbalance(result.labelling) == pytest.approx(abs(node.sizes @ result.labelling) / node.sizes.sum())
    assert broken > 0


@pytest.mark.parametrize("name", SPLITS)
def test_a_split_ignores_how_rows_of_a_class_are_ordered(name):
    nodes = [make_node("rbf", 6, tol=1e-6) for _ in range(2)]
    results = [SPLITS[name].divide(node) for node in nodes]
    np.testing.assert_array_equal(results[0].labelling, results[1].labelling)


def test_exhaustive_split_refuses_more_classes_than_it_can_list():
    with pytest.raises(ValueError, match="at most 16 classes; this node has 17"):
        ExhaustiveSplit().divide(make_node("linear", 17, per_class=2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RelaxationSplit(oracle="l2"), r"'oracle' parameter of RelaxationSplit.*Got 'l2'"),
        (lambda: RelaxationSplit(mkl="newton"), r"'mkl' parameter of RelaxationSplit.*Got 'newton'"),
        (lambda: RelaxationSplit(rounding="up"), r"'rounding' parameter of RelaxationSplit.*Got 'up'"),
        (lambda: ExhaustiveSplit(criterion="gini"), r"'criterion' parameter of ExhaustiveSplit.*Got 'gini'"),
    ],
)
def test_an_unknown_choice_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_listed_labellings_are_all_splits_once():
    labellings = all_labellings(6)
    assert len({z.tobytes() for z in labellings}) == len(labellings) == 31
    assert (labellings[:, 0] == 1.0).all()
    assert (np.abs(np.diff(labellings, axis=0)).sum(axis=1) == 2.0).all()


def test_integer_units_have_no_common_divisor_and_none_for_fractions():
    np.testing.assert_array_equal(integer_units(np.array([6.0, 9.0, 12.0])), [2, 3, 4])
    assert len(integer_units(np.array([1.0, 2.5]))) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_classes", "n_features"), [(6, 4), (14, 4), (14, 150)])
def test_a_search_on_fewer_rows_keeps_the_machine_of_all_rows(monkeypatch, kind, n_classes, n_features):
    node = make_node(kind, n_classes, per_class=12, n_features=n_features)
    monkeypatch.setattr(type(node.rows), "SEARCHED_ROWS", node.rows.n_rows // 2)
    solve, searched = type(node.rows).solve, []
    monkeypatch.setattr(
        type(node.rows), "solve", lambda rows, *args, **options: searched.append(rows) or solve(rows, *args, **options)
    )
    result = BestFirstSplit().divide(node)
    *before, last = searched
    assert last is node.rows
    assert all(rows.n_rows < 0.7 * node.rows.n_rows for rows in before)
    assert node.is_feasible(result.labelling)
    assert len(result.solution.alpha) == node.rows.n_rows
    assert result.solution.duality_gap <= node.tol
    assert result.solution.objective == pytest.approx(primal_optimum(node, result.labelling), rel=1e-3)
    assert result.lower_bound <= result.solution.objective * (1.0 + 1e-9)
    # What the search took is counted.
    assert node.n_iter > result.solution.n_iter


def test_a_search_on_the_leading_axes_splits_as_well_as_one_that_sees_all_features():
    for seed in range(3):
        node = make_node("linear", 14, per_class=12, n_features=150, seed=seed, C=1.0)
        assert node.for_search(all_coordinates=False).rows.features.shape[1] == 65
        assert node.for_search(all_coordinates=True) is node
        found = BestFirstSplit().divide(node).solution.objective
        whole = make_node("linear", 14, per_class=12, n_features=150, seed=seed, C=1.0)
        whole.rows._leading = None
        assert whole.for_search(all_coordinates=False) is whole
        assert found <= 1.1 * BestFirstSplit().divide(whole).solution.objective
