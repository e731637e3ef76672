"""Saving and loading: the same model comes back, from one file that is always whole."""

import errno
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from fitted_models import CASES
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from margintree import MarginTreeClassifier, ModelFileError, OneVsRestSVC, load_model, read_metadata, save_model
from margintree.model_file import container
from margintree.model_file.files import FORMAT, READERS

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize("layout", ["dense", "csr_array", "csr_matrix"])
@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_gives_the_same_answers_bit_for_bit(name, layout, fitted, tmp_path, assert_same_answers):
    case = fitted(name, layout)
    save_model(case.model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same_answers(case.model, loaded, case.X)
    assert vars(loaded).keys() == vars(case.model).keys()
    in_memory = load_model(tmp_path / "model", mmap=False, verify=True)
    assert (in_memory.predict(case.X) == case.model.predict(case.X)).all()


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_is_an_estimator_of_scikit_learn(name, fitted, tmp_path, assert_same_answers):
    case = fitted(name)
    save_model(case.model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert repr(loaded) == repr(case.model)
    assert type(case.model).__name__ in estimator_html_repr(loaded)
    again = clone(loaded)
    assert not hasattr(again, "classes_")
    assert repr(again) == repr(case.model)
    assert_same_answers(case.model, pickle.loads(pickle.dumps(loaded)), case.X)


@pytest.mark.parametrize("name", CASES)
def test_saving_a_loaded_model_gives_the_same_file(name, fitted, tmp_path):
    save_model(fitted(name).model, tmp_path / "one")
    save_model(load_model(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_loaded_model_can_be_saved_over_the_file_it_is_mapped_from(fitted, tmp_path, assert_same_answers):
    case = fitted("MarginTreeClassifier linear")
    save_model(case.model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    save_model(loaded, tmp_path / "model")
    assert_same_answers(case.model, loaded, case.X)
    assert_same_answers(case.model, load_model(tmp_path / "model"), case.X)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ant", "bee", "cat", "dog", "eel"]),
        np.array(["ant", "bee", "cat", "dog", "größer 大"], dtype="U40"),
        np.array(["ant", "bee", "cat", "dog", "größer 大"], dtype=object),
        np.array([-5, 0, 3, 100, 2**40]),
        np.array([1, 2, 3, 4, 250], dtype=np.uint8),
        np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
    ],
    ids=["U3", "U40", "object", "int64", "uint8", "float64"],
)
def test_labels_survive_with_their_type(labels, fitted, tmp_path):
    case = fitted("OneVsRestSVC linear")
    model = clone(case.model).fit(case.X, labels[case.y])
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.predict(case.X).tolist() == model.predict(case.X).tolist()


def test_truth_values_survive_as_labels(fitted, tmp_path):
    case = fitted("MarginTreeClassifier linear")
    save_model(clone(case.model).fit(case.X, case.y > 1), tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.classes_.dtype == bool
    assert loaded.predict(case.X).tolist() == (case.y > 1).tolist()


def test_names_of_features_and_records_of_nodes_survive(fitted, tmp_path):
    import pandas as pd

    case = fitted("MarginTreeClassifier linear")
    frame = pd.DataFrame(case.X, columns=[f"feature {j}" for j in range(case.X.shape[1])])
    model = clone(case.model).fit(frame, case.y)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    assert loaded.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"feature 0": "other"}))
    assert loaded.tree_ == model.tree_
    assert loaded.trees_ == model.trees_
    assert loaded.n_iter_ == model.n_iter_
    for record, original in zip(loaded.node_records_, model.node_records_, strict=True):
        assert np.isnan(record.seconds)
        known, expected = ({**vars(r), "seconds": None, "restricted_value": None} for r in (record, original))
        assert known == expected


@pytest.mark.parametrize("name", ["MarginTreeClassifier linear", "pairs rbf", "rest linear", "paths linear"])
def test_who_decides_and_what_was_tried_survives(name, fitted, tmp_path):
    model = fitted(name).model
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.decide_ == model.decide_
    assert loaded.candidates_ == model.candidates_
    # With one decider to choose from nothing is tried.
    assert (model.candidates_ == []) == (name == "paths linear")
    assert sum(candidate.is_chosen for candidate in loaded.candidates_) == (name != "paths linear")
    for field in ("gap", "n_finalists"):
        assert getattr(loaded._ranker, field) == getattr(model._ranker, field)
    for field in ("kind", "slope", "path_weight"):
        assert getattr(loaded._ranker.decider, field) == getattr(model._ranker.decider, field)
    for field in ("pair_start", "pair_other"):
        np.testing.assert_array_equal(getattr(loaded._ranker.decider, field), getattr(model._ranker.decider, field))


def test_arrays_of_a_mapped_model_are_views_of_the_file_that_nobody_can_write_to(fitted, tmp_path):
    import mmap

    save_model(fitted("MarginTreeClassifier linear").model, tmp_path / "model")
    cells = load_model(tmp_path / "model")._model.table.cells
    assert not cells.flags.writeable
    assert isinstance(cells.base, mmap.mmap)
    with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
        cells.flags.writeable = True


PROGRAM = """
    import sys
    import numpy as np
    from margintree import {estimator}, save_model
    rng = np.random.default_rng(0)
    X = rng.random((200, 30)) * (rng.random((200, 30)) < 0.3)
    y = np.arange(200) % 7
    for n_jobs in (1, 2, 4):
        model = {estimator}({arguments}random_state=3, n_jobs=n_jobs, verbose=n_jobs == 2)
        save_model(model.fit(X, y), sys.argv[1] + str(n_jobs))
"""


@pytest.mark.parametrize(
    ("estimator", "arguments"),
    [
        ("MarginTreeClassifier", ""),
        ("MarginTreeClassifier", "decide='pairs', "),
        ("MarginTreeClassifier", "decide='rest', n_finalists=4, "),
        ("MarginTreeClassifier", "'rbf', "),
        ("MarginTreeClassifier", "'rbf', decide='rest', "),
        ("OneVsOneSVC", "'poly', "),
    ],
)
def test_a_model_is_the_same_file_for_any_n_jobs_and_in_new_processes(estimator, arguments, tmp_path):
    program = textwrap.dedent(PROGRAM.format(estimator=estimator, arguments=arguments))
    for process in ("a", "b"):
        environment = {**os.environ, "PYTHONHASHSEED": str(ord(process))}
        subprocess.run([sys.executable, "-c", program, str(tmp_path / process)], check=True, env=environment)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(files) == 6
    assert len(set(files.values())) == 1


@pytest.mark.parametrize("path", sorted(FILES.glob("*.margintree")), ids=lambda path: path.stem)
def test_stored_files_of_every_format_keep_loading_with_the_same_predictions(path):
    known = json.loads(path.with_suffix(".json").read_text())
    model = load_model(path, verify=True)
    X = np.array(known["rows"])
    assert type(model).__name__ == known["estimator"]
    assert model.predict(X).tolist() == known["labels"]
    # Exponentials may differ in the last bits from one processor to another.
    np.testing.assert_allclose(getattr(model, known["scores_of"])(X), known["scores"], rtol=1e-9, atol=1e-12)


def test_there_is_a_stored_file_of_every_format():
    formats = {
        container.read(path, is_mapped=False).metadata["margintree_format"] for path in FILES.glob("*.margintree")
    }
    assert formats == {str(number) for number in READERS}


def test_there_is_a_stored_margin_tree_of_every_kernel_and_decider():
    models = [load_model(path) for path in FILES.glob(f"format_{FORMAT}_*.margintree")]
    found = {(model.kernel, model.decide_) for model in models if isinstance(model, MarginTreeClassifier)}
    assert found == {(kernel, decide) for kernel in ("linear", "rbf") for decide in ("paths", "pairs", "rest")}


@pytest.mark.parametrize("path", sorted(FILES.glob("format_1_*.margintree")), ids=lambda path: path.stem)
def test_a_model_of_an_older_format_is_saved_in_the_present_one(path, tmp_path):
    known = json.loads(path.with_suffix(".json").read_text())
    save_model(load_model(path), tmp_path / "model")
    assert container.read(tmp_path / "model", is_mapped=False).metadata["margintree_format"] == str(FORMAT)
    again = load_model(tmp_path / "model", verify=True)
    np.testing.assert_allclose(
        getattr(again, known["scores_of"])(np.array(known["rows"])), known["scores"], rtol=1e-9, atol=1e-12
    )


def test_a_newer_format_says_to_upgrade(fitted, tmp_path):
    save_model(fitted("OneVsRestSVC linear").model, tmp_path / "model")
    contents = container.read(tmp_path / "model", is_mapped=False)
    with (tmp_path / "model").open("wb") as stream:
        container.write(stream, contents.arrays, {"margintree_format": str(FORMAT + 1), "model": "who knows"})
    with pytest.raises(ModelFileError, match=rf"format {FORMAT + 1}.*upgrade margintree"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("damage", ["header", "weights"])
def test_damage_is_found(damage, fitted, tmp_path):
    save_model(fitted("OneVsRestSVC linear").model, tmp_path / "model")
    raw = bytearray((tmp_path / "model").read_bytes())
    place = raw.index(b'"tol') if damage == "header" else len(raw) - 500
    if damage == "header":
        raw = raw.replace(b'tol\\":0.001', b'tol\\":0.002')
    else:
        raw[place] ^= 1
    (tmp_path / "model").write_bytes(raw)
    with pytest.raises(ModelFileError, match="damaged"):
        load_model(tmp_path / "model", verify=True)
    if damage == "header":
        with pytest.raises(ModelFileError, match="damaged"):
            load_model(tmp_path / "model")


def test_what_is_no_model_file_is_refused(tmp_path):
    for content in (b"", b"1234567", pickle.dumps({"a": 1}), b"\xff" * 100, (2).to_bytes(8, "little") + b"{}"):
        (tmp_path / "model").write_bytes(content)
        with pytest.raises(ModelFileError, match="cannot be loaded"):
            load_model(tmp_path / "model")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="regular file"):
        load_model(tmp_path / "pipe")


def test_what_a_model_file_cannot_hold_is_refused_with_a_way_out(fitted, tmp_path):
    case = fitted("OneVsRestSVC linear")
    with pytest.raises(ModelFileError, match=r"contains no code.*joblib"):
        save_model(OneVsRestSVC(laplacian_kernel, random_state=0).fit(case.X, case.y), tmp_path / "model")
    drawn = OneVsRestSVC(random_state=np.random.RandomState(0)).fit(case.X, case.y)
    with pytest.raises(ModelFileError, match=r"set_params\(random_state=None\)"):
        save_model(drawn, tmp_path / "model")
    with pytest.raises(ModelFileError, match="pipeline"):
        save_model(make_pipeline(case.model), tmp_path / "model")
    with pytest.raises(NotFittedError):
        save_model(MarginTreeClassifier(), tmp_path / "model")

    class Derived(OneVsRestSVC):
        pass

    with pytest.raises(ModelFileError, match="stores a fitted"):
        save_model(Derived().fit(case.X, case.y), tmp_path / "model")
    changed = clone(case.model).fit(case.X, case.y).set_params(kernel="rbf")
    with pytest.raises(ModelFileError, match="kernel='rbf'"):
        save_model(changed, tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="Create it"):
        save_model(case.model, tmp_path / "no directory" / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(fitted, tmp_path):
    save_model(fitted("OneVsRestSVC linear").model, tmp_path / "model")
    old = (tmp_path / "model").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
        with pytest.raises(OSError, match=r"could not be saved.*unchanged") as caught:
            save_model(fitted("OutputCodeSVC rbf").model, tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.errno == errno.EFBIG
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_bytes() == old


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_small_disk_that_is_really_full(fitted, tmp_path):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        with pytest.raises(OSError, match=r"No space left on device.*Free some space") as caught:
            save_model(fitted("OutputCodeSVC rbf").model, tmp_path / "model")
        assert caught.value.errno == errno.ENOSPC
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


KILLED = """
    import sys
    import numpy as np
    from margintree import OneVsRestSVC, save_model
    X = np.random.default_rng(0).random((14, 100_000))
    model = OneVsRestSVC(random_state=0, max_iter=1, tol=0.5).fit(X, np.arange(14) % 7)
    print("ready", flush=True)
    while True:
        save_model(model, sys.argv[1])
"""


def test_a_kill_while_saving_leaves_a_whole_file(fitted, tmp_path):
    path = tmp_path / "model"
    for number in range(3):
        save_model(fitted("OneVsRestSVC linear").model, path)
        program = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED), str(path)]
        with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.02 + 0.05 * number)
            process.send_signal(signal.SIGKILL)
        model = load_model(path, verify=True)
        assert len(model.classes_) in (5, 7)


@pytest.mark.parametrize("name", ["rest linear", "pairs linear", "pairs rbf", "CPT online", "code"])
def test_joblib_keeps_working_with_read_only_memory_maps(name, fitted, tmp_path, assert_same_answers):
    case = fitted(name, "csr_array")
    joblib.dump(case.model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert_same_answers(case.model, mapped, case.X)
    save_model(mapped, tmp_path / "model")
    assert_same_answers(case.model, load_model(tmp_path / "model"), case.X)


def test_a_large_model_is_ready_in_well_under_a_second(tmp_path):
    """A table of 256 MB: loading must not depend on its size, so a tenth of a second is far too much already."""
    from margintree.class_tree import ClassTree
    from margintree.prediction.linear_tree import LinearTree
    from margintree.prediction.weight_table import DENSE, WeightTable

    n_classes, n_features = 65, 2**20
    rng = np.random.default_rng(0)
    X, y = rng.random((130, 3)), np.arange(130) % n_classes
    model = MarginTreeClassifier(walk="greedy", calibration_folds=0, split="random", random_state=0).fit(X, y)
    tree: ClassTree = model.tree_
    n_weights = np.where(tree.leaf_class < 0, DENSE, 0)
    start = np.concatenate([[0], np.cumsum(np.where(n_weights < 0, n_features, 0))]).astype(np.uint64)
    plain = np.ones(tree.n_nodes)
    table = WeightTable(n_features, start, n_weights, np.zeros(int(start[-1]), dtype=np.uint32), plain, 0.0 * plain)
    model._model, model.n_features_in_ = LinearTree((tree,), table), n_features
    save_model(model, tmp_path / "model")
    assert (tmp_path / "model").stat().st_size > 2**28
    load_model(tmp_path / "model")
    began = time.perf_counter()
    loaded = load_model(tmp_path / "model")
    assert time.perf_counter() - began < 0.1
    assert loaded.single_instance().predict(np.array([3]), np.array([1.0])) in model.classes_


def test_metadata_are_kept_beside_the_model(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = OneVsRestSVC(random_state=0).fit(X, y)
    save_model(model, tmp_path / "m", metadata={"licence": "CC0 \u2713"})
    assert read_metadata(tmp_path / "m") == {"licence": "CC0 \u2713"}
    assert load_model(tmp_path / "m", verify=True).predict(X).tolist() == model.predict(X).tolist()
    save_model(model, tmp_path / "m")
    assert read_metadata(tmp_path / "m") == {}
    for name in ("model", "sha256", "margintree_format"):
        with pytest.raises(ModelFileError, match="is reserved for the model"):
            save_model(model, tmp_path / "m", metadata={name: "x"})
    with pytest.raises(TypeError, match="mapping of str to str"):
        save_model(model, tmp_path / "m", metadata={"year": 2024})
    assert read_metadata(tmp_path / "m") == {}
