"""MarginTreeClassifier: data it takes, data it refuses, and what it promises about the tree."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from margintree import ClassTree, MarginTreeClassifier
from margintree.solvers import training_set
from margintree.splits import SPLITS, BestFirstSplit
from margintree.training import defaults

KERNELS = ["linear", "rbf"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def blobs(n_classes, per_class, n_features=6, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, n_features))
    y = np.repeat(np.arange(n_classes), per_class)
    return centres[y] + spread * rng.standard_normal((len(y), n_features)), y


# A Gaussian machine separates almost any two groups of digits.
@pytest.mark.parametrize(("kernel", "gain"), [("linear", 0.05), ("rbf", 0.0)])
def test_digits_are_learned_well_above_a_random_tree(digits, kernel, gain):
    X, y = digits
    scores = {
        split: MarginTreeClassifier(kernel, C=10, split=split, walk="greedy", random_state=0)
        .fit(X[::2], y[::2])
        .score(X[1::2], y[1::2])
        for split in ("best_first", "random")
    }
    assert scores["best_first"] > scores["random"] + gain
    assert scores["best_first"] > 0.91


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_records_describe_every_internal_node_of_the_tree(kernel, split):
    X, y = blobs(7, 12)
    model = MarginTreeClassifier(kernel, split=split, random_state=0).fit(X, y)
    assert isinstance(model.tree_, ClassTree)
    assert model.tree_.n_classes == 7
    assert len(model.node_records_) == 6
    for node, record in zip(model.tree_.internal_nodes, model.node_records_, strict=True):
        left, right = model.tree_.children_left[node], model.tree_.children_right[node]
        np.testing.assert_array_equal(model.tree_.classes_below(left), record.classes_left)
        np.testing.assert_array_equal(model.tree_.classes_below(right), record.classes_right)
        assert record.n_rows == 12 * (len(record.classes_left) + len(record.classes_right))
        assert record.lower_bound <= record.objective * (1 + 1e-9)
        assert 0.0 <= record.duality_gap <= model.tol
        assert record.imbalance == pytest.approx(
            abs(len(record.classes_left) - len(record.classes_right))
            / (len(record.classes_left) + len(record.classes_right))
        )
        assert record.seconds > 0.0
        assert record.n_iter > 0
    assert model.node_records_[0].n_rows == len(y)


@pytest.mark.parametrize("split", ["relaxation", "paper"])
def test_relaxation_records_its_planes(split):
    X, y = blobs(6, 15)
    root = MarginTreeClassifier("rbf", split=split, random_state=0).fit(X, y).node_records_[0]
    assert root.n_planes >= 1
    assert root.restricted_value > 0.0
    assert root.lower_bound <= root.restricted_value * (1 + 1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("split", ["best_first", "random", "centroid", "alternating"])
def test_the_tree_is_the_same_for_any_number_of_threads(kernel, split):
    X, y = blobs(23, 9)
    models = [
        MarginTreeClassifier(kernel, split=split, n_jobs=n_jobs, random_state=3).fit(X, y) for n_jobs in (1, 2, 4)
    ]
    for model in models[1:]:
        assert model.tree_ == models[0].tree_
        assert [r.objective for r in model.node_records_] == [r.objective for r in models[0].node_records_]
        np.testing.assert_array_equal(model.predict_proba(X), models[0].predict_proba(X))


def test_machines_that_learn_from_lists_are_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(defaults, "WORK_OF_ALL", 0)
    monkeypatch.setattr(training_set, "PIECE_VALUES", 50)
    X, y = blobs(23, 9)
    one, several = (MarginTreeClassifier(decide="rest", n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3))
    assert one.candidates_ == several.candidates_
    np.testing.assert_array_equal(one.predict_proba(X), several.predict_proba(X))


def test_the_same_seed_gives_the_same_tree_and_another_seed_may_not():
    X, y = blobs(20, 5)
    trees = [MarginTreeClassifier(split="random", random_state=s).fit(X, y).tree_ for s in (0, 0, 1)]
    assert trees[0] == trees[1]
    assert trees[0] != trees[2]


@pytest.mark.parametrize("kernel", KERNELS)
def test_dense_sparse_and_frames_give_the_same_model(digits, kernel):
    X, y = digits[0][:300], digits[1][:300]
    expected = MarginTreeClassifier(kernel, random_state=0).fit(X, y)
    named = pd.DataFrame(X, columns=[f"pixel{i}" for i in range(X.shape[1])])
    for given in (sp.csr_array(X), sp.csr_matrix(X), sp.csc_array(X), named, pl.DataFrame(named.to_dict("list"))):
        model = MarginTreeClassifier(kernel, random_state=0).fit(given, y)
        assert model.tree_ == expected.tree_
        np.testing.assert_array_equal(model.predict(given), expected.predict(X))


def test_sparse_matrices_with_64_bit_indices_are_taken(digits):
    X, y = sp.csr_array(digits[0][:200]), digits[1][:200]
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    model = MarginTreeClassifier(random_state=0).fit(wide, y)
    np.testing.assert_array_equal(model.predict(wide), MarginTreeClassifier(random_state=0).fit(X, y).predict(X))


def test_feature_names_of_frames_are_checked(digits):
    X = pd.DataFrame(digits[0][:100], columns=[f"pixel{i}" for i in range(64)])
    model = MarginTreeClassifier(random_state=0).fit(X, digits[1][:100])
    assert list(model.feature_names_in_) == list(X.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"pixel0": "other"}))


def test_string_labels_come_back_as_strings(digits):
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    y = names[digits[1][:300]]
    model = MarginTreeClassifier(random_state=0).fit(digits[0][:300], y)
    assert model.predict(digits[0][:5]).dtype == y.dtype
    assert set(model.predict(digits[0])) <= set(names)
    assert "seven" in model.tree_.to_text(model.classes_)


def test_precomputed_and_callable_kernels_equal_the_named_one(digits):
    X, y = digits[0][:200], digits[1][:200]
    new = digits[0][200:300]
    named = MarginTreeClassifier("rbf", gamma=0.05, random_state=0).fit(X, y)

    def kernel(A, B):
        return rbf_kernel(A, B, gamma=0.05)

    by_callable = MarginTreeClassifier(kernel, random_state=0).fit(X, y)
    by_matrix = MarginTreeClassifier("precomputed", random_state=0).fit(kernel(X, X), y)
    np.testing.assert_array_equal(by_callable.predict(new), named.predict(new))
    np.testing.assert_array_equal(by_matrix.predict(kernel(new, X)), named.predict(new))


def test_precomputed_kernel_must_be_square():
    with pytest.raises(ValueError, match=r"square matrix.*\(4, 3\)"):
        MarginTreeClassifier("precomputed").fit(np.ones((4, 3)), [0, 0, 1, 1])


def test_kernel_larger_than_the_cache_gives_the_same_tree(digits):
    X, y = digits[0][:400], digits[1][:400]
    held = MarginTreeClassifier("rbf", C=10, tol=1e-6, random_state=0).fit(X, y)
    # 0.25 MB are 32768 values: 81 rows of 400, while the deeper nodes fit whole.
    cached = MarginTreeClassifier("rbf", C=10, tol=1e-6, cache_size=0.25, random_state=0).fit(X, y)
    assert cached.tree_ == held.tree_
    np.testing.assert_array_equal(cached.predict(digits[0]), held.predict(digits[0]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_weight_two_is_a_row_that_stands_there_twice(kernel):
    X, y = blobs(6, 10, spread=1.0)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = MarginTreeClassifier(kernel, tol=1e-6, max_iter=10000, random_state=0).fit(X, y, weight)
    doubled = MarginTreeClassifier(kernel, tol=1e-6, max_iter=10000, random_state=0).fit(X[repeated], y[repeated])
    assert weighted.tree_ == doubled.tree_
    np.testing.assert_allclose(
        [r.objective for r in weighted.node_records_], [r.objective for r in doubled.node_records_], rtol=1e-5
    )


def test_weight_zero_is_a_row_that_is_absent():
    X, y = blobs(5, 10)
    weight = np.where(y == 4, 0.0, 1.0)
    model = MarginTreeClassifier(random_state=0).fit(X, y, weight)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2, 3])
    assert model.tree_ == MarginTreeClassifier(random_state=0).fit(X[y < 4], y[y < 4]).tree_


def test_renaming_classes_renames_the_tree():
    X, y = blobs(8, 20, spread=0.6)
    new_name = np.random.default_rng(5).permutation(8)
    model = MarginTreeClassifier("rbf", random_state=0, tol=1e-6).fit(X, y)
    renamed = MarginTreeClassifier("rbf", random_state=0, tol=1e-6).fit(X, new_name[y])

    def groups(tree, names):
        return {frozenset(names[tree.classes_below(node)].tolist()) for node in range(tree.n_nodes)}

    assert groups(model.tree_, new_name) == groups(renamed.tree_, np.arange(8))


def test_class_weight_changes_the_loss_but_not_the_sizes():
    X, y = blobs(4, 15, spread=1.5)
    plain = MarginTreeClassifier(random_state=0).fit(X, y)
    heavy = MarginTreeClassifier(random_state=0, class_weight={0: 50.0, 1: 1.0, 2: 1.0, 3: 1.0}).fit(X, y)
    assert np.mean(heavy.predict(X[y == 0]) == 0) >= np.mean(plain.predict(X[y == 0]) == 0)
    assert heavy.node_records_[0].objective > plain.node_records_[0].objective
    assert heavy.node_records_[0].imbalance == plain.node_records_[0].imbalance


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_class_that_outweighs_all_others_widens_the_balance(kernel):
    X, y = blobs(5, 10)
    X = np.vstack([X, X[:1] + 0.1 * np.random.default_rng(0).standard_normal((200, 6))])
    y = np.concatenate([y, np.zeros(200, dtype=int)])
    model = MarginTreeClassifier(kernel, balance=0.1, random_state=0).fit(X, y)
    root = model.node_records_[0]
    assert root.balance_was_widened
    assert root.imbalance <= 210 / 250
    assert not MarginTreeClassifier(balance=0.5, random_state=0).fit(*blobs(6, 10)).node_records_[0].balance_was_widened


@pytest.mark.parametrize("split", SPLITS)
def test_a_class_with_one_row_gets_its_leaf(split):
    X, y = blobs(5, 8)
    y = y.copy()
    y[0] = 9
    X[0] += 5.0
    model = MarginTreeClassifier(split=split, C=100, random_state=0).fit(X, y)
    assert model.predict(X[:1]) == [9]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("split", SPLITS)
def test_two_classes_are_one_machine(kernel, split):
    X, y = blobs(2, 20)
    model = MarginTreeClassifier(kernel, split=split, random_state=0).fit(X, y)
    assert model.tree_ == ClassTree.from_nested((0, 1))
    assert model.score(X, y) == 1.0
    np.testing.assert_array_equal(model.n_evaluations(X), 1)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match=r"at least 2 classes.*got 1 class: \['only'\]"):
        MarginTreeClassifier().fit(np.eye(3), ["only"] * 3)


def test_1500_classes_make_a_tree_of_logarithmic_depth():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(1500), 4)
    centres = sp.random_array((1500, 800), density=0.02, rng=rng, format="csr")
    X = centres[y] + sp.random_array((6000, 800), density=0.002, rng=rng, format="csr")
    model = MarginTreeClassifier(C=10, walk="greedy", random_state=0).fit(X, y)
    assert model.tree_.n_classes == 1500
    assert model.n_evaluations(X).mean() < 2 * np.log2(1500)
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("split", SPLITS)
def test_all_zero_rows_equal_rows_and_constant_features_do_no_harm(kernel, split):
    X, y = blobs(5, 8)
    X[:, 2] = 7.0
    X[:, 4] = 0.0
    X[0] = X[8] = X[16] = 0.0
    X[1] = X[9]
    model = MarginTreeClassifier(kernel, split=split, max_iter=5000, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.5
    assert np.isfinite([r.objective for r in model.node_records_]).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("split", SPLITS)
def test_rows_that_are_all_equal_still_give_a_tree(kernel, split):
    X, y = np.ones((12, 3)), np.repeat(np.arange(4), 3)
    model = MarginTreeClassifier(kernel, split=split, random_state=0).fit(X, y)
    assert model.tree_.n_classes == 4
    assert len(set(model.predict(X))) == 1


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_float32_and_read_only_input_is_taken_as_it_is(kernel, make):
    X, y = blobs(5, 12)
    X32 = X.astype(np.float32)
    expected = MarginTreeClassifier(kernel, random_state=0).fit(make(X32.astype(np.float64)), y)
    frozen = make(X32)
    for array in (frozen,) if isinstance(frozen, np.ndarray) else (frozen.data, frozen.indices, frozen.indptr):
        array.flags.writeable = False
    y.flags.writeable = False
    model = MarginTreeClassifier(kernel, random_state=0).fit(frozen, y)
    assert model.tree_ == expected.tree_
    np.testing.assert_array_equal(model.predict(frozen), expected.predict(make(X32)))


def test_read_only_and_strided_arrays_compile_nothing_new():
    from margintree.compiled import linear_dual, walk

    X, y = blobs(6, 10)
    MarginTreeClassifier(random_state=0).fit(X, y).predict(X)
    before = len(linear_dual.solve.signatures), len(walk.greedy.signatures)
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    frozen = X.copy()
    frozen.flags.writeable = False
    for given in (wide, frozen, np.asfortranarray(X), X.astype(np.float32), X.tolist()):
        MarginTreeClassifier(random_state=0).fit(given, y).predict(given)
    assert (len(linear_dual.solve.signatures), len(walk.greedy.signatures)) == before


@pytest.mark.parametrize("kernel", KERNELS)
def test_pickled_and_cloned_models_keep_their_word(digits, kernel):
    X, y = digits
    model = MarginTreeClassifier(kernel, random_state=0).fit(X[:300], y[:300])
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    assert restored.tree_ == model.tree_
    assert not hasattr(clone(model), "tree_")


@pytest.mark.parametrize("walk", ["greedy", "beam", "all"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_decision_path_runs_from_the_root_to_the_predicted_leaf(digits, kernel, walk):
    X, y = digits[0][:400], digits[1][:400]
    model = MarginTreeClassifier(kernel, walk=walk, random_state=0).fit(X, y)
    paths = model.decision_path(X)
    assert paths.shape == (400, model.tree_.n_nodes)
    for row, predicted in enumerate(model.predict(X)):
        nodes = paths.indices[paths.indptr[row] : paths.indptr[row + 1]]
        assert nodes[0] == 0
        assert model.tree_.leaf_class[nodes[-1]] == predicted
        np.testing.assert_array_equal(model.tree_.parent[nodes[1:]], nodes[:-1])
    if walk == "greedy":
        np.testing.assert_array_equal(model.n_evaluations(X), paths.sum(axis=1) - 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": -1.0}, "The 'C' parameter of MarginTreeClassifier must be a float in the range"),
        ({"balance": 1.0}, "The 'balance' parameter of MarginTreeClassifier must be a float in the range"),
        ({"split": "best"}, "The 'split' parameter of MarginTreeClassifier must be a str among"),
        ({"kernel": "sigmoid"}, "The 'kernel' parameter of MarginTreeClassifier must be a str among"),
        ({"tol": 0.0}, "The 'tol' parameter of MarginTreeClassifier must be a float in the range"),
    ],
)
def test_a_parameter_out_of_range_is_named(parameters, message):
    X, y = blobs(3, 5)
    with pytest.raises(ValueError, match=message):
        MarginTreeClassifier(**parameters).fit(X, y)


def test_negative_sample_weights_are_refused():
    X, y = blobs(3, 5)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        MarginTreeClassifier().fit(X, y, np.where(y == 0, -1.0, 1.0))


def test_exhaustive_split_says_what_to_do_with_too_many_classes():
    X, y = blobs(17, 3)
    with pytest.raises(ValueError, match=r"at most 16 classes; this node has 17.*split='best_first'"):
        MarginTreeClassifier(split="exhaustive").fit(X, y)


def test_a_fit_that_does_not_converge_warns_once_and_names_the_gap():
    # So many support vectors that no node is small enough to be polished.
    X, y = make_classification(2000, 20, n_informative=10, n_classes=5, class_sep=0.01, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match=r"of 4 nodes stopped with a relative duality gap of up to .*max_iter=1"
    ) as caught:
        MarginTreeClassifier("rbf", C=1e4, max_iter=1, tol=1e-6, random_state=0).fit(X, y)
    assert len([w for w in caught if w.category is ConvergenceWarning]) == 1


def test_a_fit_that_converges_warns_of_nothing():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MarginTreeClassifier(random_state=0).fit(X, y)


def test_verbose_prints_a_line_per_node(capsys):
    X, y = blobs(5, 6)
    MarginTreeClassifier(verbose=2, random_state=0).fit(X, y)
    lines = [line for line in capsys.readouterr().out.splitlines() if " node " in line]
    assert len(lines) == 4
    assert lines[0].startswith("[margintree] node 1/4: 5 classes -> ")


def test_callbacks_hear_of_every_node_and_of_the_decider():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

    class Count:
        def __init__(self):
            self.events = []

        def setup(self, estimator, context):
            self.events.append(("setup", context.max_subtasks))

        def teardown(self, estimator, context):
            self.events.append(("teardown", context.task_name))

        def on_fit_task_begin(self, estimator, context):
            self.events.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context):
            self.events.append(("end", context.task_name))

    X, y = blobs(6, 5)
    count = Count()
    MarginTreeClassifier(random_state=0).set_callbacks(count).fit(X, y)
    # Six classes have five nodes, and one decider.
    assert count.events[0] == ("setup", 6)
    assert count.events[1] == ("begin", "fit")
    assert count.events.count(("begin", "node")) == count.events.count(("end", "node")) == 5
    assert count.events[-4:] == [("begin", "decider"), ("end", "decider"), ("end", "fit"), ("teardown", "fit")]


def test_a_split_object_may_stand_in_for_a_name():
    X, y = blobs(6, 10)
    by_name = MarginTreeClassifier(random_state=0).fit(X, y)
    by_object = MarginTreeClassifier(split=BestFirstSplit(), random_state=0).fit(X, y)
    assert by_name.tree_ == by_object.tree_


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_lower_bound_holds_on_features_of_any_scale(kernel, scale, C):
    X, y = blobs(6, 10, n_features=4, spread=1.0)
    model = MarginTreeClassifier(kernel, C=C, gamma=0.1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X * scale, y)
    for record in model.node_records_:
        assert record.lower_bound <= record.objective


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_entries_that_are_stored_twice_add_up(kernel):
    X, y = blobs(6, 10)
    plain = sp.csr_array(X)
    doubled = sp.csr_array(
        (np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), plain.indptr * 2), shape=plain.shape
    )
    assert not doubled.has_canonical_format
    expected = MarginTreeClassifier(kernel, random_state=0).fit(X, y)
    np.testing.assert_array_equal(expected.predict(doubled), expected.predict(X))
    model = MarginTreeClassifier(kernel, random_state=0).fit(doubled, y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert doubled.nnz == 2 * plain.nnz


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_scale_of_gamma_is_that_of_scikit_learn_wherever_the_data_lie(make, shift):
    X, y = blobs(4, 20)
    model = MarginTreeClassifier("rbf", random_state=0).fit(make(X + shift), y)
    assert model._model.function.gamma == pytest.approx(1.0 / (X.shape[1] * X.var()), rel=1e-6)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("tiny", [1e-9, 1e-12])
def test_weights_that_differ_by_many_orders_leave_no_side_empty(split, tiny):
    X, y = blobs(5, 8)
    model = MarginTreeClassifier(split=split, random_state=0).fit(X, y, np.where(y == 0, 1.0, tiny))
    assert model.tree_.n_classes == 5


def test_weights_lost_in_rounding_are_refused():
    X, y = blobs(4, 5)
    with pytest.raises(ValueError, match=r"rows of class .* too little to tell from rounding errors"):
        MarginTreeClassifier().fit(X, y, np.where(y == 0, 1.0, 1e-20))


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_class_weights_that_are_no_weights_are_refused(factor):
    X, y = blobs(3, 5)
    with pytest.raises(ValueError, match=r"class_weight must be positive and finite. Got .* for class"):
        MarginTreeClassifier(class_weight={0: factor, 1: 1.0, 2: 1.0}).fit(X, y)


@pytest.mark.parametrize("split", ["best_first", "alternating"])
def test_many_classes_whose_means_coincide_still_give_a_tree(split):
    y = np.repeat(np.arange(140), 2)
    model = MarginTreeClassifier(split=split, random_state=0).fit(np.zeros((280, 3)), y)
    assert model.tree_.n_classes == 140


@pytest.mark.parametrize("split", SPLITS)
def test_rows_without_any_entry_still_give_a_tree(split):
    y = np.repeat(np.arange(4), 3)
    model = MarginTreeClassifier(split=split, fit_intercept=False, random_state=0).fit(sp.csr_array((12, 4)), y)
    assert model.tree_.n_classes == 4


@pytest.mark.parametrize("scale", [1e60, 1e160])
def test_features_too_large_to_multiply_are_refused(scale):
    X, y = blobs(4, 5)
    with pytest.raises(ValueError, match="Scale the features"):
        MarginTreeClassifier().fit(X * scale, y)


class ReturnsNothing:
    def divide(self, node):
        return np.ones(node.n_classes)


class OneSided:
    def divide(self, node):
        return SPLITS["random"].divide(node).__class__(np.ones(node.n_classes), None, 0.0, True)


@pytest.mark.parametrize(
    ("split", "error", "message"),
    [
        (BestFirstSplit, TypeError, r"Got the class BestFirstSplit; write split=BestFirstSplit\(\)"),
        (ReturnsNothing(), TypeError, "ReturnsNothing.divide must return a SplitResult.*Got ndarray"),
        (OneSided(), ValueError, r"OneSided.divide must label each of the 3 classes .* with \+1 or -1 and use both"),
    ],
)
def test_a_split_of_ones_own_is_told_what_is_wrong(split, error, message):
    X, y = blobs(3, 5)
    with pytest.raises(error, match=message):
        MarginTreeClassifier(split=split).fit(X, y)


@pytest.mark.parametrize("parameters", [{"patience": 0}, {"n_directions": 0}, {"list_up_to": 40}])
def test_parameters_of_the_search_are_checked(parameters):
    with pytest.raises(ValueError, match="parameter of BestFirstSplit must"):
        BestFirstSplit(**parameters)


def test_a_degree_below_one_is_refused_by_name():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="'degree' parameter of MarginTreeClassifier must be a float in the range"):
        MarginTreeClassifier("poly", degree=0.5).fit(X, y)
