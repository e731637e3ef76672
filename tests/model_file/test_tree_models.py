"""Everything that compiled loops index is checked: one wrong number in any of these arrays is found."""

import io
import json

import numpy as np
import pytest

from margintree import ModelFileError, load_model, save_model
from margintree.model_file import container
from margintree.prediction.weight_table import n_cells

BEYOND = 10**6


def rewritten(path, change):
    """Change arrays and facts of a file, and seal it again."""
    contents = container.read(path, is_mapped=False)
    model = json.loads(contents.metadata["model"])
    arrays = {name: array.copy() for name, array in contents.arrays.items()}
    change(arrays, model["facts"])
    model["sha256"] = {name: container.digest_of(array) for name, array in arrays.items()}
    stream = io.BytesIO()
    metadata = {"margintree_format": contents.metadata["margintree_format"], "model": json.dumps(model)}
    container.write(stream, {name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata)
    path.write_bytes(stream.getvalue())


INDICES = [
    ("MarginTreeClassifier linear", "trees.children_left"),
    ("MarginTreeClassifier linear", "trees.children_right"),
    ("MarginTreeClassifier linear", "trees.leaf_class"),
    ("MarginTreeClassifier linear", "model.table.n_weights"),
    ("MarginTreeClassifier linear", "candidates.decide"),
    ("rest linear", "ranker.table.n_weights"),
    ("pairs linear", "ranker.table.n_weights"),
    ("pairs linear", "ranker.n_pairs"),
    ("pairs linear", "ranker.pair_other"),
    ("pairs rbf", "ranker.n_pairs"),
    ("pairs rbf", "ranker.pair_other"),
    ("pairs rbf", "model.support"),
    ("pairs rbf", "model.n_support"),
    ("pairs precomputed", "model.support"),
    ("rest rbf", "model.n_support"),
    ("MarginTreeClassifier linear", "records.classes_left"),
    ("MarginTreeClassifier linear", "records.n_classes_right"),
    ("MarginTreeClassifier rbf", "model.support"),
    ("MarginTreeClassifier rbf", "model.n_support"),
    ("MarginTreeClassifier rbf", "model.vectors.indices"),
    ("MarginTreeClassifier rbf", "model.vectors.indptr"),
    ("MarginTreeClassifier precomputed", "model.support"),
    ("CPT online", "model.columns"),
    ("CPT online", "model.n_weights"),
    ("CPT online", "stream.number"),
    ("CPT online", "stream.class_of_label"),
    ("CPT online", "stream.columns"),
    ("CPT online", "stream.n_columns"),
    ("OneVsOneSVC linear", "machines.weights.indices"),
    ("OneVsOneSVC linear", "machines.weights.indptr"),
    ("OneVsRestSVC rbf", "machines.coefficients.indices"),
    ("OneVsRestSVC rbf", "machines.coefficients.indptr"),
    ("OneVsRestSVC rbf", "machines.vectors.indices"),
    ("OneVsRestSVC precomputed", "machines.support"),
    ("DecisionDAGClassifier linear", "order"),
    ("FilterTreeClassifier linear", "n_node_rows"),
    ("OutputCodeSVC linear", "code"),
]


@pytest.mark.parametrize("value", [-2, BEYOND, "minimum", "maximum"])
@pytest.mark.parametrize(("name", "array"), INDICES)
def test_an_index_that_leads_outside_is_refused(name, array, value, fitted, tmp_path):
    save_model(fitted(name, "wide").model, tmp_path / "model")

    def change(arrays, facts):
        limits = np.iinfo(arrays[array].dtype)
        number = {"minimum": limits.min, "maximum": limits.max}.get(value, value)
        for place in (0, -1):
            arrays[array].reshape(-1)[place] = np.clip(number, limits.min, limits.max)

    rewritten(tmp_path / "model", change)
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("array", ["children_left", "children_right"])
def test_a_cycle_is_refused(array, fitted, tmp_path):
    save_model(fitted("LabelTreeClassifier linear").model, tmp_path / "model")

    def change(arrays, facts):
        inner = np.flatnonzero(arrays["trees.children_left"][0] >= 0)
        arrays[f"trees.{array}"][0, inner[-1]] = 0

    rewritten(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match=r"reached exactly once|preorder"):
        load_model(tmp_path / "model")


def test_lengths_that_add_up_only_by_overflow_are_refused(fitted, tmp_path):
    save_model(fitted("MarginTreeClassifier rbf").model, tmp_path / "model")

    def change(arrays, facts):
        arrays["model.n_support"][:2] += np.array([2**62, 2**62])
        arrays["model.n_support"][2:4] += np.array([2**62, 2**62])

    rewritten(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match="lengths outside"):
        load_model(tmp_path / "model")


def swapped(arrays):
    arrays["ranker.pair_other"][:2] = arrays["ranker.pair_other"][1::-1].copy()


def twice(arrays):
    arrays["ranker.pair_other"][1] = arrays["ranker.pair_other"][0]


def with_itself(arrays):
    arrays["ranker.pair_other"][0] = np.flatnonzero(arrays["ranker.n_pairs"])[0]


def with_a_smaller_class(arrays):
    # The first pair of the second class, which has larger ones so far.
    assert arrays["ranker.n_pairs"][1] > 0
    arrays["ranker.pair_other"][arrays["ranker.n_pairs"][0]] = 0


def of_another_class(arrays):
    # The last pair of the first class goes to the last class, which has none.
    arrays["ranker.n_pairs"][0] -= 1
    arrays["ranker.n_pairs"][-1] += 1


@pytest.mark.parametrize("change", [swapped, twice, with_itself, with_a_smaller_class, of_another_class])
@pytest.mark.parametrize("name", ["pairs linear", "pairs rbf"])
def test_pairs_that_a_search_by_halving_would_not_find_are_refused(name, change, fitted, tmp_path):
    save_model(fitted(name).model, tmp_path / "model")
    rewritten(tmp_path / "model", lambda arrays, facts: change(arrays))
    with pytest.raises(ModelFileError, match="pairs of classes are not sorted"):
        load_model(tmp_path / "model")


def one_pair_less(arrays, facts):
    last = np.flatnonzero(arrays["ranker.n_pairs"])[-1]
    arrays["ranker.n_pairs"][last] -= 1
    arrays["ranker.pair_other"] = arrays["ranker.pair_other"][:-1]


def one_pair_more(arrays, facts):
    # Of the first class that has no machine with all larger ones; after one_pair_less there is such a class.
    n_pairs = arrays["ranker.n_pairs"]
    one = np.flatnonzero(n_pairs < np.arange(len(n_pairs))[::-1])[0]
    start, stop = n_pairs[:one].sum(), n_pairs[: one + 1].sum()
    others = arrays["ranker.pair_other"]
    new = np.setdiff1d(np.arange(one + 1, len(n_pairs)), others[start:stop])[:1]
    own = np.sort(np.concatenate([others[start:stop], new]))
    arrays["ranker.pair_other"] = np.concatenate([others[:start], own, others[stop:]])
    n_pairs[one] += 1


def no_pairs(arrays, facts):
    del arrays["ranker.n_pairs"], arrays["ranker.pair_other"]
    facts["ranker.kind"] = "paths"


@pytest.mark.parametrize("change", [one_pair_less, no_pairs])
@pytest.mark.parametrize(("name", "reason"), [("pairs linear", "ranker.table"), ("pairs rbf", "model.n_support")])
def test_another_number_of_pairs_than_of_machines_is_refused(name, reason, change, fitted, tmp_path):
    save_model(fitted(name).model, tmp_path / "model")
    rewritten(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match=reason):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("name", ["pairs linear", "pairs rbf"])
def test_more_pairs_than_machines_are_refused(name, fitted, tmp_path):
    save_model(fitted(name).model, tmp_path / "model")

    def without_the_last_machine(arrays, facts):
        one_pair_less(arrays, facts)
        if "ranker.table.cells" not in arrays:
            last = arrays["model.n_support"][-1]
            for key in ("support", "coefficients"):
                arrays[f"model.{key}"] = arrays[f"model.{key}"][: len(arrays[f"model.{key}"]) - last]
            for key in ("n_support", "constants"):
                arrays[f"model.{key}"] = arrays[f"model.{key}"][:-1]
            return
        n_weights, n_features = arrays["ranker.table.n_weights"], facts["n_features"]
        cells = arrays["ranker.table.cells"]
        arrays["ranker.table.cells"] = cells[: len(cells) - n_cells(n_weights[-1:], n_features)[0]]
        for key in ("n_weights", "scale", "intercept"):
            arrays[f"ranker.table.{key}"] = arrays[f"ranker.table.{key}"][:-1]

    rewritten(tmp_path / "model", without_the_last_machine)
    # So far all is well: a model with a pair less.
    assert len(load_model(tmp_path / "model")._ranker.decider.pair_other) == 9
    rewritten(tmp_path / "model", one_pair_more)
    with pytest.raises(ModelFileError, match=r"expected \((10|19),\)"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("n_more", [-1, 1])
def test_another_number_of_kernel_machines_than_of_classes_is_refused(n_more, fitted, tmp_path):
    save_model(fitted("rest rbf").model, tmp_path / "model")

    def change(arrays, facts):
        lengths, constants = arrays["model.n_support"], arrays["model.constants"]
        if n_more > 0:
            arrays["model.n_support"], arrays["model.constants"] = np.append(lengths, 0), np.append(constants, 0.0)
            return
        arrays["model.n_support"] = np.append(lengths[:-2], lengths[-2:].sum())
        arrays["model.constants"] = constants[:-1]

    rewritten(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match=r"'model.n_support' has shape"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("ranker.width", 6),
        ("ranker.width", -1),
        ("ranker.n_finalists", 0),
        ("ranker.n_finalists", 10**9),
        ("ranker.n_finalists", None),
        ("ranker.gap", -1.0),
        ("ranker.gap", None),
        ("ranker.slope", "1"),
        ("ranker.slope", None),
        ("ranker.path_weight", [0.0]),
        ("ranker.kind", "paths"),
        ("ranker.kind", "pairs"),
        ("ranker.kind", "everybody"),
        ("ranker.kind", 2),
        ("n_features", 39),
        ("n_features", 0),
        ("n_features", 2**31),
        ("model.kind", "kernel"),
        ("classes.type", "U999999999"),
    ],
)
def test_a_fact_out_of_range_is_refused(fact, value, fitted, tmp_path):
    save_model(fitted("rest linear").model, tmp_path / "model")
    rewritten(tmp_path / "model", lambda arrays, facts: facts.update({fact: value}))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("rest linear", "model.slope"),
        ("rest linear", "model.shift"),
        ("rest linear", "model.table.scale"),
        ("rest linear", "ranker.table.intercept"),
        ("pairs linear", "ranker.table.scale"),
        ("pairs rbf", "model.constants"),
    ],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_of_machines_that_are_not_finite_are_refused(name, array, value, fitted, tmp_path):
    save_model(fitted(name).model, tmp_path / "model")
    # The last one of a kernel is a deciding machine's.
    rewritten(tmp_path / "model", lambda arrays, facts: arrays[array].__setitem__(-1, value))
    with pytest.raises(ModelFileError, match="not finite"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    "name", ["rest linear", "pairs linear", "two trees", "all paths", "all paths pairs", "greedy", "CPT svm linear"]
)
def test_weights_of_any_bits_predict_some_class(name, fitted, tmp_path):
    """Cells hold columns, weights and filters; whatever is there, loops end within the machine and within the row."""
    case = fitted(name, "csr_array")
    save_model(case.model, tmp_path / "model")
    rng = np.random.default_rng(0)
    for fill in (0, 0xFFFFFFFF, 0x7FC00000, None):

        def change(arrays, facts, fill=fill):
            for array in (a for key, a in arrays.items() if key.endswith("cells")):
                array[:] = rng.integers(2**32, size=array.shape, dtype=np.uint32) if fill is None else fill

        rewritten(tmp_path / "model", change)
        model = load_model(tmp_path / "model", verify=True)
        for X in (case.X, case.X.toarray()):
            with np.errstate(all="ignore"):
                assert set(model.predict(X)) <= set(case.model.classes_)


def test_arrays_and_facts_that_nobody_asked_for_are_refused(fitted, tmp_path):
    save_model(fitted("OneVsRestSVC linear").model, tmp_path / "model")
    rewritten(tmp_path / "model", lambda arrays, facts: arrays.update(more=np.zeros(1)))
    with pytest.raises(ModelFileError, match="holds more"):
        load_model(tmp_path / "model")
    save_model(fitted("OneVsRestSVC linear").model, tmp_path / "model")
    rewritten(tmp_path / "model", lambda arrays, facts: facts.update(more=1))
    with pytest.raises(ModelFileError, match="holds more"):
        load_model(tmp_path / "model")
