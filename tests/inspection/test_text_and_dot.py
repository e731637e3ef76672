"""Outlines and DOT."""

import html
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
from hostile_labels import HOSTILE
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margintree import ClassTree, FilterTreeClassifier, MarginTreeClassifier, OneVsRestSVC
from margintree.inspection import ConfusionByTreeDisplay, export_graphviz, export_text
from margintree.inspection.labels import one_line


def test_the_outline_has_every_class_and_node_once(digits):
    model, _, _ = digits
    lines = [line.split("── ")[-1] for line in export_text(model).splitlines()]
    assert sorted(line for line in lines if not line.startswith("[")) == [str(k) for k in range(10)]
    nodes = [int(line[1 : line.index("]")]) for line in lines if line.startswith("[")]
    assert sorted(nodes) == model.tree_.internal_nodes.tolist()
    assert lines[0].startswith(f"[0] 10 classes, margin {model.node_records_[0].margin:.3g}")


def test_depth_collapses_groups_with_their_size(digits):
    model, _, _ = digits
    text = export_text(model, max_depth=1)
    assert len(text.splitlines()) == 3
    sizes = [len(model.node_records_[0].classes_left), len(model.node_records_[0].classes_right)]
    for size, line in zip(sizes, text.splitlines()[1:], strict=True):
        assert f"… {size} classes (" in line


def test_errors_of_the_outline_are_those_of_predict(digits):
    model, X, y = digits
    text = export_text(model, X=X, y=y, show_rows=True)
    errors = [int(part.split()[0]) for part in text.replace("\n", ", ").split(", ") if "wrong side" in part]
    assert sum(errors) == (model.predict(X) != y).sum() > 0
    assert text.splitlines()[0].startswith(f"[0] 10 classes, {len(y)} rows")


def test_class_names_take_the_place_of_labels_and_must_fit(digits):
    model, _, _ = digits
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    assert "── nine" in export_text(model, class_names=names)
    with pytest.raises(ValueError, match=r"one name for each of the 10 classes\. Got 3"):
        export_text(model, class_names=names[:3])


def test_trees_of_other_estimators_and_bare_trees_have_an_outline():
    X, y = np.arange(12.0).reshape(-1, 1), np.repeat(["a", "b", "c"], 4)
    assert "── c" in export_text(FilterTreeClassifier(random_state=0).fit(X, y))
    assert "── class 1" in export_text(ClassTree.from_nested((0, 1)))
    assert export_text(ClassTree.from_nested(0)) == "class 0"


def test_a_pipeline_shows_the_tree_at_its_end_and_predicts_as_a_whole():
    X, y = np.arange(12.0).reshape(-1, 1) * 1e3, np.repeat(["a", "b", "c"], 4)
    pipeline = make_pipeline(StandardScaler(), MarginTreeClassifier(walk="greedy", calibration_folds=0)).fit(X, y)
    assert export_text(pipeline) == export_text(pipeline[-1])
    scaled = pipeline[:-1].transform(X)
    assert export_text(pipeline, X=X, y=y, show_rows=True) == export_text(pipeline[-1], X=scaled, y=y, show_rows=True)


def test_what_has_no_tree_is_refused():
    X, y = np.arange(12.0).reshape(-1, 1), np.repeat(["a", "b", "c"], 4)
    with pytest.raises(TypeError, match=r"Got OneVsRestSVC"):
        export_text(OneVsRestSVC(random_state=0).fit(X, y))
    with pytest.raises(TypeError, match=r"Got OneVsRestSVC"):
        export_text(make_pipeline(OneVsRestSVC(random_state=0)).fit(X, y))
    with pytest.raises(ValueError, match="not fitted"):
        export_text(MarginTreeClassifier())
    with pytest.raises(ValueError, match="X and y must be given together"):
        export_text(MarginTreeClassifier(walk="greedy", calibration_folds=0).fit(X, y), X=X)
    with pytest.raises(ValueError, match=r"classes that the model was fitted with.* the first is 'd'"):
        export_text(MarginTreeClassifier(walk="greedy", calibration_folds=0).fit(X, y), X=X, y=["d"] * 12)


def test_hostile_labels_stay_on_one_printable_line(hostile):
    text = export_text(hostile[0])
    assert len(text.splitlines()) == 15
    assert all(line.isprintable() for line in text.splitlines())
    assert "abc\\u202etxt" in text
    assert "two\\nlines" in text
    assert "שלום עולם" in text


def test_words_with_joiners_keep_them():
    assert one_line("می‌خواهم") == "می‌خواهم"


def test_hostile_labels_stay_in_the_quotes_of_dot(hostile):
    """As DOT reads them: a backslash escapes what follows it, and then references are characters."""
    lines = [line for line in export_graphviz(hostile[0]).splitlines() if "shape=plain" in line]
    quoted = [re.fullmatch(r'  \d+ \[label="((?:[^"\\]|\\.)*)", shape=plain, style=""\];', line) for line in lines]
    texts = [html.unescape(re.sub(r"\\(.)", r"\1", found[1])) for found in quoted]
    assert sorted(texts) == sorted(one_line(label) for label in HOSTILE)


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_graphviz_draws_every_hostile_label_as_it_stands(hostile):
    dot = export_graphviz(hostile[0])
    done = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, check=True, encoding="utf-8")
    assert done.stderr == ""
    texts = {e.text for e in ElementTree.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}text")}
    assert {one_line(label) for label in HOSTILE} <= texts


def test_dot_has_an_edge_for_each_child_and_collapses_groups(digits):
    model, X, y = digits
    dot = export_graphviz(model, X=X, y=y)
    assert dot.count(" -> ") == model.tree_.n_nodes - 1
    assert export_graphviz(model, max_leaves=3).count(" -> ") == 4
    assert "shape=folder" in export_graphviz(model, max_depth=1)
    assert "rankdir=TB" in export_graphviz(model, rotate=False)


def test_nodes_in_dot_are_shaded_by_accuracy_or_else_by_margin(digits):
    model, X, y = digits

    def lightest(dot):
        return {int(node) for node in re.findall(r'^  (\d+) \[label=.*fillcolor="#ffffe5"', dot, re.MULTILINE)}

    nodes = model.tree_.internal_nodes
    assert nodes[np.argmin([record.margin for record in model.node_records_])] in lightest(export_graphviz(model))
    accuracy = ConfusionByTreeDisplay.from_estimator(model, X, y).facts.accuracy
    assert np.nanargmin(accuracy) in lightest(export_graphviz(model, X=X, y=y))
    assert 'fillcolor="#' not in export_graphviz(model.tree_)


def test_a_tree_as_deep_as_it_has_classes_is_written(tmp_path):
    n = 3000
    chain = ClassTree.from_preorder([x for k in range(n - 1) for x in (-1, k)] + [n - 1])
    assert len(export_text(chain).splitlines()) == chain.n_nodes
    assert export_graphviz(chain).count(" -> ") == chain.n_nodes - 1
