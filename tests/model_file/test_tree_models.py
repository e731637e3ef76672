"""Everything that compiled loops index is checked: one wrong number in any of these arrays is found."""

import io
import json

import numpy as np
import pytest

from margintree import ModelFileError, load_model, save_model
from margintree.model_file import container

BEYOND = 10**6


def rewritten(path, change):
    """Change arrays and facts of a file, and seal it again."""
    contents = container.read(path, is_mapped=False)
    model = json.loads(contents.metadata["model"])
    arrays = {name: array.copy() for name, array in contents.arrays.items()}
    change(arrays, model["facts"])
    model["sha256"] = {name: container.digest_of(array) for name, array in arrays.items()}
    stream = io.BytesIO()
    metadata = {"margintree_format": "1", "model": json.dumps(model)}
    container.write(stream, {name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata)
    path.write_bytes(stream.getvalue())


INDICES = [
    ("MarginTreeClassifier linear", "trees.children_left"),
    ("MarginTreeClassifier linear", "trees.children_right"),
    ("MarginTreeClassifier linear", "trees.leaf_class"),
    ("MarginTreeClassifier linear", "model.table.n_weights"),
    ("MarginTreeClassifier linear", "ranker.scorers.n_weights"),
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


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("ranker.width", 6),
        ("ranker.width", -1),
        ("ranker.n_candidates", 0),
        ("ranker.n_candidates", 10**9),
        ("ranker.gap", -1.0),
        ("ranker.gap", None),
        ("ranker.temperature", "1"),
        ("n_features", 39),
        ("n_features", 0),
        ("n_features", 2**31),
        ("model.kind", "kernel"),
        ("classes.type", "U999999999"),
    ],
)
def test_a_fact_out_of_range_is_refused(fact, value, fitted, tmp_path):
    save_model(fitted("MarginTreeClassifier linear").model, tmp_path / "model")
    rewritten(tmp_path / "model", lambda arrays, facts: facts.update({fact: value}))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("array", ["model.slope", "model.shift", "model.table.scale", "ranker.scorers.intercept"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_of_nodes_that_are_not_finite_are_refused(array, value, fitted, tmp_path):
    save_model(fitted("MarginTreeClassifier linear").model, tmp_path / "model")
    rewritten(tmp_path / "model", lambda arrays, facts: arrays[array].__setitem__(0, value))
    with pytest.raises(ModelFileError, match="not finite"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("name", ["MarginTreeClassifier linear", "two trees", "all paths", "greedy", "CPT svm linear"])
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
