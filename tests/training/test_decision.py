"""Who has the last word: what is tried, what is chosen, and that cross-validation promises no more than it may."""

import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_expit
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from margintree import MarginTreeClassifier, OneVsOneSVC, OneVsRestSVC
from margintree.estimators import margin_tree
from margintree.prediction.decider import Decider
from margintree.prediction.ranker import path_candidates
from margintree.solvers import training_set as sets
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.kernel_source import KernelSource
from margintree.solvers.row_keys import row_keys
from margintree.solvers.softmax_machines import SoftmaxTrainer
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet
from margintree.training import decision, defaults
from margintree.training.decision import choose, is_hopeless, validation_parts
from margintree.training.defaults import (
    LOGISTIC,
    MORE_FINALISTS,
    PAIRS_OF_KERNELS,
    PATHS,
    REST,
    REST_FROM_OFFSET,
    REST_WITH_LARGE_C,
    Wanted,
    candidates,
    learns_from_all,
    number_of_folds,
    number_of_parts,
)
from margintree.training.folds import deal
from margintree.training.held_out import Rows
from margintree.training.pair_machines import train_pairs
from margintree.training.validation import Result, result_of, weights_of

PAIRS, MORE_PAIRS, MOST_PAIRS = defaults.PAIRS
MOST_PAIRS_OF_KERNELS = defaults.PAIRS_OF_KERNELS[-1]
REST_WITH_PATH = replace(REST, weighs_path=True)
ANYTHING = Wanted("auto", None, None, None, 10, 0.1)
DECIDERS = ["paths", "pairs", "rest"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def blobs(n_classes=6, per_class=15, n_features=4, spread=0.8, seed=0):
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), per_class)
    return random.normal(size=(n_classes, n_features))[y] + spread * random.normal(size=(len(y), n_features)), y


def result(wrong, cost, importance=None, n_rows=100):
    """Return a result that is right but for the given rows."""
    importance = np.ones(n_rows) if importance is None else importance
    return Result(~np.isin(np.arange(n_rows), wrong), importance, np.full(n_rows, float(cost)))


@pytest.mark.parametrize(("enough", "expected"), [(0.4, MORE_PAIRS), (0.5, REST), (1.0, PAIRS), (1.5, PATHS)])
def test_the_cheapest_within_so_many_standard_errors_of_the_best_is_chosen(monkeypatch, enough, expected):
    monkeypatch.setattr(defaults, "ENOUGH", enough)
    results = {
        # Behind the best on two rows and ahead on none: two against the root of two.
        PATHS: result([0, 1, 2, 3], 5),
        # Behind on two rows and ahead on one: one against the root of three.
        PAIRS: result([0, 3, 4], 7),
        # Behind on three rows and ahead on two: one against the root of five.
        REST: result([3, 4, 5], 9),
        MORE_PAIRS: result([0, 1], 20),
    }
    chosen, records = choose(results)
    assert chosen == expected
    assert [record.is_chosen for record in records] == [one == expected for one in results]
    np.testing.assert_allclose([record.accuracy for record in records], [0.96, 0.97, 0.97, 0.98])
    np.testing.assert_allclose([record.behind for record in records], [0.02, 0.01, 0.01, 0.0])
    np.testing.assert_allclose([record.standard_error for record in records], np.sqrt([2, 3, 5, 0]) / 100)
    assert [record.n_evaluations for record in records] == [5.0, 7.0, 9.0, 20.0]
    assert [(record.decide, record.n_finalists) for record in records] == [
        (one.decide, one.n_finalists) for one in results
    ]


@pytest.mark.parametrize(
    ("with_path", "expected"),
    # Ahead on one row and behind on none; ahead on two and behind on one; ahead on three and behind on two; level.
    [([1], REST_WITH_PATH), ([2, 9], REST_WITH_PATH), ([8, 9], REST), ([0, 1, 2], REST)],
)
def test_machines_without_a_path_decide_unless_it_makes_them_clearly_better(with_path, expected):
    flat = [1, 2] if with_path == [1] else [0, 1, 2]
    results = {PAIRS: result(range(50), 3), REST: result(flat, 30), REST_WITH_PATH: result(with_path, 10)}
    assert choose(results)[0] == expected
    del results[REST]
    assert choose(results)[0] == REST_WITH_PATH


def test_of_candidates_that_cost_the_same_the_more_accurate_is_chosen():
    # Behind on three rows and ahead on two.
    for wrong, expected in (([[0, 1, 2], [3, 4]], PAIRS), ([[3, 4], [0, 1, 2]], PATHS)):
        both = {one: result(rows, 5) for one, rows in zip((PATHS, PAIRS), wrong, strict=True)}
        assert choose(both)[0] == expected


def test_rows_that_count_more_weigh_more_in_the_choice():
    heavy = np.where(np.arange(100) == 7, 50.0, 1.0)
    light = np.where(np.arange(100) == 7, 0.1, 1.0)
    for importance, expected in ((heavy, PAIRS), (light, PATHS)):
        # Equal costs: the more accurate is chosen, by weight.
        results = {PATHS: result([7], 5, importance), PAIRS: result([1, 2], 5, importance)}
        assert choose(results)[0] == expected
        share = 1.0 - importance[[1, 2]].sum() / importance.sum()
        assert choose(results)[1][1].accuracy == pytest.approx(share)


def test_without_a_validation_row_there_is_no_choice_to_record():
    assert choose({PATHS: result_of([], 1)}) == (PATHS, [])


@pytest.mark.parametrize("importance", [np.zeros(100), None], ids=["no row", "all rows"])
def test_where_no_row_can_tell_one_against_the_rest_or_most_pairs_decide(importance):
    tried = [PAIRS, REST_FROM_OFFSET, REST, MORE_PAIRS]
    expected = [REST, MORE_PAIRS] if importance is not None else [PAIRS, PAIRS]
    for some, one in zip((tried, [PAIRS, MORE_PAIRS]), expected, strict=True):
        results = {candidate: result([], cost, importance) for cost, candidate in enumerate(some)}
        chosen, records = choose(results)
        assert chosen == one
        assert len(records) == (0 if importance is not None else len(some))


def test_one_slope_is_fitted_to_the_scores_of_all_parts():
    # Own classes lead by 1 in three groups of four, by 2 in three of four: each part by itself has another slope.
    own = np.array([True, False] * 3 + [False, True])
    parts = [(np.full(4, 2), np.array([lead, 0.0] * 4), np.zeros(8), own, np.ones(4)) for lead in (1.0, 2.0)]
    alone = [weights_of([part], (True, False))[0] for part in parts]
    assert alone[1] < weights_of(parts, (True, False))[0] < alone[0]


def test_the_path_weighs_most_where_it_tells_more_than_the_machines():
    random = np.random.default_rng(0)
    start, is_own = np.full(300, 4), np.tile([True, False, False, False], 300)

    def weights_for(signal_of_machines, signal_of_paths):
        scores = [signal * is_own + random.normal(size=1200) for signal in (signal_of_machines, signal_of_paths)]
        return weights_of([(start, *scores, is_own, np.ones(300))], (True, True))

    by_paths, by_machines, by_both = weights_for(0.0, 2.0), weights_for(2.0, 0.0), weights_for(2.0, 2.0)
    assert by_paths[1] > 1.5 > 0.3 > by_paths[0]
    assert by_machines[0] > 1.5 > 0.3 > by_machines[1] >= 0.0
    # Gaussian scores with this signal have the log odds 2 * score.
    np.testing.assert_allclose(by_both, 2.0, atol=0.4)
    # What counts against the own class has no weight at all.
    assert weights_for(2.0, -2.0)[1] == 0.0


@pytest.mark.parametrize(("n_behind", "expected"), [(5, True), (3, False)])
def test_wide_pairs_are_hopeless_where_narrow_ones_are_clearly_behind(n_behind, expected):
    # So many rows behind, against twice the root of as many.
    results = {PATHS: result([0], 5), PAIRS: result(np.arange(n_behind + 1), 7)}
    assert is_hopeless(MORE_PAIRS, results) == expected
    assert not is_hopeless(REST, results)
    assert not is_hopeless(MORE_PAIRS, {PATHS: results[PATHS]})


def test_a_larger_c_is_hopeless_where_the_same_machines_with_a_smaller_one_are_clearly_behind():
    behind = {PAIRS: result([0], 5), REST: result(np.arange(6), 7)}
    assert is_hopeless(REST_WITH_LARGE_C, behind)
    # Machines that start from an offset, or have the path beside them, are others.
    assert not is_hopeless(REST_FROM_OFFSET, behind)
    assert not is_hopeless(REST_WITH_PATH, behind)
    assert not is_hopeless(REST_WITH_LARGE_C, {**behind, REST: result(np.arange(4), 7)})


def test_a_larger_c_is_hopeless_for_as_many_finalists_as_are_clearly_behind_with_a_smaller_one():
    few, many = LOGISTIC[1], replace(LOGISTIC[1], n_finalists=100)
    known = {few: result(np.arange(6), 5), many: result([0], 9)}
    for cost_factor in (8.0, 64.0):
        assert is_hopeless(replace(few, cost_factor=cost_factor), known)
        assert not is_hopeless(replace(many, cost_factor=cost_factor), known)
    # Discriminant analysis alone says nothing of machines that learn.
    assert not is_hopeless(few, {LOGISTIC[0]: result(np.arange(6), 5), many: result([0], 9)})


def test_many_finalists_need_a_wide_beam_unless_there_is_none():
    some = [replace(LOGISTIC[0], n_finalists=size) for size in (20, 50, 100)]
    for asked, expected in ((0, [0, 0, 0]), (10, [10, 50, 100]), (70, [70, 70, 100])):
        assert [one.beam(asked) for one in some] == expected


@pytest.mark.parametrize("hopeless", [True, False])
def test_what_is_hopeless_is_not_tried(monkeypatch, hopeless):
    monkeypatch.setattr(decision, "is_hopeless", lambda one, known: hopeless and one == MORE_PAIRS and PAIRS in known)
    X, y = blobs(n_classes=10)
    found = MarginTreeClassifier(decide="pairs", random_state=0).fit(X, y).candidates_
    assert [record.n_finalists for record in found] == ([3] if hopeless else [3, 8])


def test_numbers_of_finalists_share_the_machines_of_a_kernel(monkeypatch):
    trained = []

    def counted(trainer, pairs, *options):
        trained.append(len(pairs))
        return train_pairs(trainer, pairs, *options)

    monkeypatch.setattr(decision, "train_pairs", counted)
    X, y = blobs(n_classes=10)
    found = MarginTreeClassifier("rbf", random_state=0).fit(X, y).candidates_
    assert [record.n_finalists for record in found] == [4, 10]
    assert trained == [45]


@pytest.mark.parametrize(("options", "n_grown"), [({}, 6), ({"n_trees": 2}, 2)])
def test_few_validation_rows_are_new_to_the_structure_of_the_tree(monkeypatch, options, n_grown):
    sizes, (X, y) = [], blobs(n_classes=5)
    grow = margin_tree.grow
    monkeypatch.setattr(margin_tree, "grow", lambda rows, *a, **k: sizes.append(rows.n_rows) or grow(rows, *a, **k))
    MarginTreeClassifier(random_state=0, **options).fit(X, y)
    assert len(sizes) == n_grown
    assert sizes[0] == len(X)
    if n_grown == 6:
        # Each row is left out once.
        assert sum(sizes[1:]) == 4 * len(X)
    monkeypatch.setattr(defaults, "VALIDATION_ROWS", len(X) - 1)
    sizes.clear()
    MarginTreeClassifier(random_state=0, **options).fit(X, y)
    assert len(sizes) == options.get("n_trees", 1)


@pytest.mark.parametrize(("max_iter", "in_folds"), [(1000, defaults.FOLD_EPOCHS), (7, 7)])
def test_logistic_regression_of_a_fold_ends_early(monkeypatch, max_iter, in_folds):
    epochs, train = [], SoftmaxTrainer.train
    monkeypatch.setattr(
        SoftmaxTrainer, "train", lambda self, cost, tol, most: epochs.append(most) or train(self, cost, tol, most)
    )
    X, y = blobs(n_classes=4, per_class=30, spread=2.0)
    model = MarginTreeClassifier(decide="rest", max_iter=max_iter, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    (chosen,) = (one for one in model.candidates_ if one.is_chosen)
    assert chosen.loss == "log"
    assert epochs[-1] == max_iter
    assert set(epochs[:-1]) == {in_folds}


def training_set_of(n_classes, kernel="linear", make=np.asarray):
    X, weight = np.ones((2 * n_classes, 3)), np.ones(2 * n_classes)
    X[:, 2] = 0.0
    class_start = np.arange(0, len(X) + 1, 2)
    if kernel == "linear":
        return LinearTrainingSet(make(X), class_start, weight, weight, fit_intercept=True)
    return KernelTrainingSet(KernelSource(KernelFunction(kernel, gamma=1.0), X, 1.0), class_start, weight, weight)


def test_pairs_and_machines_against_the_rest_are_tried_with_the_linear_kernel(monkeypatch):
    flat = [replace(one, n_finalists=30) for one in (*LOGISTIC, REST)]
    assert candidates(ANYTHING, training_set_of(30)) == [PAIRS, *flat, REST_WITH_PATH, MORE_PAIRS, MOST_PAIRS]
    # With few classes eight finalists are most of them.
    assert MOST_PAIRS not in candidates(ANYTHING, training_set_of(16))
    # Logistic regression in the metric of the classes needs their covariance, which many sparse rows have not.
    sparse = training_set_of(30, make=sp.csr_array)
    assert candidates(ANYTHING, sparse) == [PAIRS, *flat, REST_WITH_PATH, MORE_PAIRS, MOST_PAIRS]
    monkeypatch.setattr(sets, "MOMENT_WORK", sparse.X.shape[0] * sparse.X.shape[1] ** 2 - 1)
    assert candidates(ANYTHING, sparse) == [PAIRS, flat[-1], REST_WITH_PATH, MORE_PAIRS, MOST_PAIRS]


@pytest.mark.parametrize(("make", "n_values"), [(np.asarray, 3 / 8), (sp.csr_array, 2)], ids=["dense", "csr"])
def test_pairs_of_most_classes_are_tried_up_to_ten_times_the_work_of_one_against_the_rest(monkeypatch, make, n_values):
    few, many = training_set_of(200, make=make), training_set_of(201, make=make)
    work = 402 * n_values * 201
    monkeypatch.setattr(defaults, "WORK_OF_ALL", work / 10)
    assert {MORE_PAIRS, MOST_PAIRS} <= {*candidates(ANYTHING, many)}
    monkeypatch.setattr(defaults, "WORK_OF_ALL", work / 10 - 1)
    assert [one for one in candidates(ANYTHING, many) if one.decide == "pairs"] == [PAIRS]
    assert candidates(replace(ANYTHING, decide="pairs"), many) == [PAIRS]
    assert MOST_PAIRS_OF_KERNELS in candidates(ANYTHING, training_set_of(201, "rbf"))
    # Lists have 20 classes.
    monkeypatch.setattr(defaults, "WORK_OF_ALL", 0)
    assert {MORE_PAIRS, MOST_PAIRS} <= {*candidates(ANYTHING, few)}


def test_pairs_among_many_are_tried_with_a_kernel_and_others_only_on_demand():
    few, more, most = PAIRS_OF_KERNELS
    assert candidates(ANYTHING, training_set_of(100, "rbf")) == [few, more, most]
    assert candidates(ANYTHING, training_set_of(30, "rbf")) == [few, more, replace(most, n_finalists=30)]
    # Where a few are all classes already, no more are tried.
    assert candidates(ANYTHING, training_set_of(16, "rbf")) == [few, more]
    demanded = replace(ANYTHING, decide="rest")
    assert candidates(demanded, training_set_of(30, "rbf")) == [replace(REST, n_finalists=30), REST_WITH_PATH]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_two_classes_have_their_path_unless_another_decider_is_demanded(kernel):
    two = training_set_of(2, kernel)
    assert candidates(ANYTHING, two) == [replace(PATHS, n_finalists=2)]
    assert {one.decide for one in candidates(replace(ANYTHING, decide="pairs"), two)} == {"pairs"}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("decide", DECIDERS)
def test_what_the_user_asks_for_is_all_that_is_tried(kernel, decide):
    found = candidates(Wanted(decide, 4, 7.0, None, 10, 0.1), training_set_of(30, kernel))
    assert {(one.decide, one.n_finalists, one.gap) for one in found} == {(decide, 4, 7.0)}
    # No two are the same: those that differed by what the user gave are one.
    assert len(found) == ({"linear": 5, "rbf": 2}[kernel] if decide == "rest" else 1)
    found = candidates(Wanted(decide, 100, None, None, 10, 0.1), training_set_of(9, kernel))
    assert {one.n_finalists for one in found} == {9}
    pairs = {"linear": defaults.PAIRS, "rbf": PAIRS_OF_KERNELS}[kernel][:2]
    assert {one.gap for one in found} == ({one.gap for one in pairs} if decide == "pairs" else {defaults.GAP})


@pytest.mark.parametrize(("make", "n_values"), [(np.asarray, 3 / 8), (sp.csr_array, 2)], ids=["dense", "csr"])
def test_machines_learn_from_lists_where_a_pass_over_all_rows_takes_too_many_products(monkeypatch, make, n_values):
    monkeypatch.setattr(sets, "MOMENT_WORK", 0)
    rows = training_set_of(30, make=make)
    work = 60 * n_values * 30
    monkeypatch.setattr(defaults, "WORK_OF_ALL", work)
    assert learns_from_all(rows)
    monkeypatch.setattr(defaults, "WORK_OF_ALL", work - 1)
    assert not learns_from_all(rows)
    of_dense = [replace(one, n_finalists=min(n, 30), gap=gap) for n, gap in MORE_FINALISTS for one in LOGISTIC]
    rest = of_dense if make is np.asarray else [REST_FROM_OFFSET, REST, REST_WITH_LARGE_C]
    assert candidates(ANYTHING, rows) == [PAIRS, *rest, MORE_PAIRS, MOST_PAIRS]
    monkeypatch.setattr(defaults, "WORK_OF_ALL", 0)
    assert candidates(replace(ANYTHING, decide="rest"), training_set_of(30, "rbf")) == [REST]


def test_the_number_of_folds_and_parts_goes_by_the_rows():
    assert [number_of_folds(ANYTHING, n) for n in (10, 5000, 5001)] == [5, 5, 2]
    assert number_of_folds(replace(ANYTHING, n_folds=3), 10**6) == 3
    # A seventh of the rows each, until there are a thousand of them.
    assert [number_of_parts(n) for n in (10, 1000, 1200, 3500, 6999, 7000, 10**6)] == [7, 7, 6, 2, 2, 1, 1]


def rows_of(X, y, weight, n_folds, C=1.0):
    class_start = np.searchsorted(y, np.arange(y[-1] + 2))
    training_set = LinearTrainingSet(X, class_start, weight, C * weight, fit_intercept=True)
    keys = row_keys(X)
    return Rows.of(training_set, deal(keys, class_start, weight, n_folds), n_folds, keys)


def test_validation_parts_are_disjoint_and_have_rows_of_every_fold_and_class(monkeypatch):
    X, y = blobs(n_classes=4, per_class=70)
    rows, keys = rows_of(X, y, np.ones(len(y)), 5), row_keys(X)
    parts = validation_parts(rows)
    assert len(parts) == 7
    np.testing.assert_array_equal(np.sum(parts, axis=0), 1)
    for part in parts:
        np.testing.assert_array_equal(np.bincount(y[part]), [10, 10, 10, 10])
        assert len(np.unique(rows.fold[part])) == 5
    monkeypatch.setattr(defaults, "MOST_VALIDATION_ROWS", 12)
    for whole, part in zip(parts, validation_parts(rows), strict=True):
        assert part.sum() == 12
        # Which of them goes by what they hold.
        assert keys[part].max() < keys[whole & ~part].min()


def importance_by_row_and_fold(rows):
    total = {}
    contents = [tuple(row) for row in rows.training_set.X.tolist()]
    for key, share in zip(zip(contents, rows.fold.tolist(), strict=True), rows.importance.tolist(), strict=True):
        total[key] = total.get(key, 0.0) + share
    return total


@pytest.mark.parametrize("unit", [1.0, 1000.0, 0.01])
def test_weight_two_counts_as_a_row_that_stands_there_twice_in_every_fold(unit):
    X, y = blobs()
    weight = np.where(np.arange(len(y)) % 4 == 0, 2.0, 1.0)
    weight[5] = 17.0
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = importance_by_row_and_fold(rows_of(X, y, unit * weight, 5))
    repeated = importance_by_row_and_fold(rows_of(X[twice], y[twice], np.ones(len(twice)), 5))
    assert weighted == pytest.approx(repeated)
    assert sum(weighted.values()) == pytest.approx(len(twice))
    # A row of weight 17 is in every fold.
    assert [round(weighted[tuple(X[5].tolist()), fold]) for fold in range(5)].count(4) == 2


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("decide", ["auto", *DECIDERS])
def test_weights_of_another_unit_give_the_same_probabilities(kernel, decide):
    X, y = blobs()
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    parameters = {"decide": decide, "tol": 1e-8, "max_iter": 10_000, "random_state": 0}
    one = MarginTreeClassifier(kernel, C=1.0, **parameters).fit(X, y, weight)
    # The loss is the same: a thousandth of C, a thousand times the weight.
    other = MarginTreeClassifier(kernel, C=1e-3, **parameters).fit(X, y, 1000.0 * weight)
    assert [record.is_chosen for record in other.candidates_] == [record.is_chosen for record in one.candidates_]
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(("kernel", "decide"), [("linear", "auto"), ("rbf", "rest")])
def test_the_choice_does_not_depend_on_the_order_of_the_rows(kernel, decide):
    X, y = blobs()
    order = np.random.default_rng(1).permutation(len(y))
    parameters = {"decide": decide, "tol": 1e-8, "max_iter": 10_000, "random_state": 0}
    one = MarginTreeClassifier(kernel, **parameters).fit(X, y)
    other = MarginTreeClassifier(kernel, **parameters).fit(X[order], y[order])
    assert len(one.candidates_) > 1
    for mine, theirs in zip(one.candidates_, other.candidates_, strict=True):
        assert vars(mine) == pytest.approx(vars(theirs))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("decide", ["auto", *DECIDERS])
def test_classes_of_one_row_each_are_told_apart_no_worse_than_by_the_greedy_walk(kernel, decide):
    X, y = np.random.default_rng(0).normal(size=(20, 8)), np.arange(20)
    greedy = MarginTreeClassifier(kernel, C=10, walk="greedy", random_state=0).fit(X, y)
    assert greedy.score(X, y) > 0.5
    model = MarginTreeClassifier(kernel, C=10, decide=decide, random_state=0).fit(X, y)
    assert model.score(X, y) >= greedy.score(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("decide", ["auto", "rest"])
def test_classes_of_one_dense_row_each_are_told_apart_by_machines_that_learn_from_lists(monkeypatch, decide):
    monkeypatch.setattr(defaults, "WORK_OF_ALL", 0)
    X, y = np.random.default_rng(0).normal(size=(60, 8)), np.arange(60)
    greedy = MarginTreeClassifier(C=10, walk="greedy", random_state=0).fit(X, y)
    model = MarginTreeClassifier(C=10, decide=decide, random_state=0).fit(X, y)
    assert model.decide_ == "rest"
    assert model.score(X, y) >= greedy.score(X, y) > 0.5
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("decide", DECIDERS)
@pytest.mark.parametrize("walk", ["beam", "all"])
def test_the_most_probable_class_is_the_prediction(digits, kernel, decide, walk):
    X, y = digits
    model = MarginTreeClassifier(kernel, walk=walk, decide=decide, random_state=0).fit(X[:250], y[:250])
    assert model.decide_ == decide
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("decide", ["auto", *DECIDERS])
def test_the_model_has_what_was_chosen(kernel, decide):
    X, y = blobs(n_classes=10)
    model = MarginTreeClassifier(kernel, decide=decide, random_state=0).fit(X, y)
    if decide == "paths":
        # There was no choice.
        assert model.candidates_ == []
        return
    (chosen,) = [record for record in model.candidates_ if record.is_chosen]
    ranker = model._ranker
    assert (chosen.decide, chosen.n_finalists, chosen.gap) == (model.decide_, ranker.n_finalists, ranker.gap)
    assert ranker.width == chosen.beam(model.beam_width)
    assert chosen.weighs_path or chosen.offset_scale > 0.0 or chosen.loss == "log" or ranker.decider.path_weight == 0.0
    assert chosen.behind <= defaults.ENOUGH * chosen.standard_error
    for record in model.candidates_:
        if record.behind <= defaults.ENOUGH * record.standard_error:
            assert record.n_evaluations >= chosen.n_evaluations


@pytest.mark.parametrize("from_lists", [False, True], ids=["all rows", "lists"])
@pytest.mark.parametrize(("kernel", "decide"), [("linear", "auto"), ("rbf", "pairs"), ("rbf", "rest")])
def test_labels_without_a_meaning_are_told_by_no_candidate(monkeypatch, from_lists, kernel, decide):
    """Machines that had seen the rows that they are asked about would know them by heart."""
    if from_lists:
        monkeypatch.setattr(defaults, "WORK_OF_ALL", 0)
    X, y = np.random.default_rng(0).normal(size=(120, 200)), np.repeat(np.arange(5), 24)
    model = MarginTreeClassifier(kernel, C=10, decide=decide, random_state=0).fit(X, y)
    assert OneVsOneSVC(kernel, C=10).fit(X, y).score(X, y) > 0.9
    assert len(model.candidates_) >= 1
    for record in model.candidates_:
        # A fifth, and three standard errors.
        assert record.accuracy < 0.2 + 3 * np.sqrt(0.2 * 0.8 / 120)


@pytest.mark.parametrize("from_lists", [False, True], ids=["all rows", "lists"])
def test_the_accuracy_that_is_promised_is_that_on_new_rows(monkeypatch, digits, from_lists):
    if from_lists:
        monkeypatch.setattr(defaults, "WORK_OF_ALL", 0)
    X, y = digits
    model = MarginTreeClassifier(random_state=0).fit(X[:900], y[:900])
    (chosen,) = [record for record in model.candidates_ if record.is_chosen]
    order = np.random.default_rng(0).permutation(900)
    scores = []
    for part in np.array_split(order, 5):
        train = np.setdiff1d(order, part)
        parameters = {"decide": chosen.decide, "n_finalists": chosen.n_finalists, "beam_gap": chosen.gap}
        scores.append(
            MarginTreeClassifier(random_state=0, **parameters).fit(X[train], y[train]).score(X[part], y[part])
        )
    # Two standard errors of 900 rows.
    assert chosen.accuracy == pytest.approx(np.mean(scores), abs=0.015)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_another_slope_of_machines_against_the_rest_makes_new_rows_less_likely(digits, kernel):
    X, y = digits
    model = MarginTreeClassifier(kernel, C=10, decide="rest", random_state=0).fit(X[:400], y[:400])
    ranker = model._ranker

    def loss(factor):
        decider = replace(ranker.decider, slope=factor * ranker.decider.slope)
        return log_loss(y[400:], replace(ranker, decider=decider).probabilities(X[400:]))

    assert loss(1.0) < min(loss(0.3), loss(3.0))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_another_slope_of_pairs_makes_new_rows_less_likely_against_their_opponents(digits, kernel):
    X, y = digits
    parameters = {"C": 10, "tol": 1e-6, "random_state": 0}
    model = MarginTreeClassifier(kernel, decide="pairs", n_finalists=3, prune=0.0, **parameters).fit(X[:400], y[:400])
    flat = OneVsOneSVC(kernel, **parameters).fit(X[:400], y[:400])
    values, number = flat._machines.decisions(X), {tuple(pair): m for m, pair in enumerate(flat.pairs_.tolist())}
    finalists, _ = path_candidates(model._model, X, model.beam_width, model._ranker.gap, 3)
    of_own = []
    for row in range(400, len(y)):
        own, others = int(y[row]), [k for k in finalists[row].tolist() if k >= 0 and k != y[row]]
        if own in finalists[row]:
            of_own += [values[row, number[own, k]] if own < k else -values[row, number[k, own]] for k in others]
    assert len(of_own) > 500

    def loss(factor):
        return -log_expit(factor * model._ranker.decider.slope * np.array(of_own)).sum()

    assert loss(1.0) < min(loss(0.3), loss(3.0))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_pairs_among_all_classes_decide_as_a_coupling_of_one_vs_one(digits, kernel):
    X, y = digits
    flat = OneVsOneSVC(kernel, C=10, tol=1e-6, max_iter=10_000, random_state=0).fit(X[:300], y[:300])
    model = MarginTreeClassifier(
        kernel, C=10, walk="all", decide="pairs", n_finalists=10, beam_gap=1e6, prune=0.0, tol=1e-6, random_state=0
    ).fit(X[:300], y[:300])
    log_odds = np.full((len(y), 10, 10), np.inf)
    for (one, other), column in zip(combinations(range(10), 2), flat._machines.decisions(X).T, strict=True):
        log_odds[:, one, other] = model._ranker.decider.slope * column
        log_odds[:, other, one] = -log_odds[:, one, other]
    expected = np.argmax(1.0 / (1.0 + np.exp(-log_odds).sum(axis=2)), axis=1)
    # Who wins all pairs is never struck off; who loses one by as much cannot be the most probable.
    is_clear = log_odds[np.arange(len(y)), expected].min(axis=1) > 2.0
    assert is_clear.mean() > 0.5
    np.testing.assert_array_equal(model.predict(X)[is_clear], expected[is_clear])
    # There is more to it than the path.
    assert (model._ranker.decider.kind, len(model._ranker.decider.pair_other)) == ("pairs", 45)
    paths = replace(model._ranker, decider=Decider("paths")).winners(X)[0]
    assert (paths != expected)[is_clear].any()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_machines_of_all_classes_against_the_rest_decide_by_the_largest_value(monkeypatch, digits, kernel):
    monkeypatch.setattr(defaults, "LOGISTIC", ())
    X, y = digits
    parameters = {"C": 5.0, "tol": 1e-6, "random_state": 0}
    model = MarginTreeClassifier(
        kernel, walk="all", decide="rest", n_finalists=10, beam_gap=1e6, prune=0.0, **parameters
    )
    model.fit(X[:300], y[:300])
    model._ranker = replace(model._ranker, decider=replace(model._ranker.decider, path_weight=0.0))
    # Machines against the rest have twice the C.
    peer = OneVsRestSVC(kernel, **{**parameters, "C": 10.0}).fit(X[:300], y[:300])
    second, best = np.sort(peer.decision_function(X), axis=1)[:, -2:].T
    is_clear = best - second > 1e-2
    assert is_clear.mean() > 0.9
    np.testing.assert_array_equal(model.predict(X)[is_clear], peer.predict(X)[is_clear])
