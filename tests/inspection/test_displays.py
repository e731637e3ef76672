"""Drawings of trees and of confusion."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hostile_labels import HOSTILE
from sklearn.metrics import confusion_matrix

from margintree import ClassTree
from margintree.inspection import ClassTreeDisplay, ConfusionByTreeDisplay, plot_tree
from margintree.inspection.labels import one_line
from margintree.inspection.tree_facts import ends_of
from margintree.structures.random_tree import random_tree


def leaf_order(tree):
    return tree.leaf_class[tree.leaf_class >= 0].tolist()


def test_classes_stand_in_the_order_of_the_tree(digits):
    model, _, _ = digits
    display = plot_tree(model)
    assert [text.get_text() for text in display.texts_] == [str(k) for k in leaf_order(model.tree_)]
    heights = [text.xy[1] for text in display.texts_]
    assert heights == sorted(heights)
    assert len(display.nodes_.get_offsets()) == 9


def test_nodes_are_shaded_by_margin_or_accuracy(digits):
    model, X, y = digits
    by_margin = plot_tree(model)
    margins = [record.margin for record in model.node_records_]
    np.testing.assert_allclose(by_margin.nodes_.get_array(), margins)
    by_accuracy = plot_tree(model, X=X, y=y)
    accuracy = np.asarray(by_accuracy.nodes_.get_array())
    assert accuracy.min() < 1.0
    assert (accuracy <= 1.0).all()
    assert by_accuracy.facts.shading()[0] == "accuracy"
    assert plot_tree(model.tree_).nodes_.get_array() is None


def test_many_classes_are_collapsed_to_groups_with_their_size():
    tree = random_tree(1500, 0)
    display = plot_tree(tree, max_leaves=40)
    texts = [text.get_text() for text in display.texts_]
    assert len(texts) == 40
    sizes = [int(text.split("(")[1].split(" ")[0]) for text in texts]
    assert sum(sizes) == 1500
    assert len(plot_tree(tree, max_depth=2).texts_) == 4


def test_the_largest_group_is_opened_first():
    tree = ClassTree.from_nested(((0, 1), (((2, 3), 4), (5, 6))))
    assert ends_of(tree, max_leaves=3) == [1, 5, 10]
    assert ends_of(tree, max_leaves=1) == [0]
    assert len(ends_of(tree)) == 7
    with pytest.raises(ValueError, match=r"max_leaves must be None or an int >= 1\. Got 0"):
        ends_of(tree, max_leaves=0)


def test_thumbnails_stand_at_their_classes(digits):
    from matplotlib.offsetbox import AnnotationBbox

    model, X, y = digits
    pictures = np.array([X[y == k].mean(axis=0).reshape(8, 8) for k in range(10)])
    display = plot_tree(model, thumbnails=pictures)
    boxes = [artist for artist in display.ax_.get_children() if isinstance(artist, AnnotationBbox)]
    shown = {int(box.xy[1]): box.offsetbox.get_data() for box in boxes}
    for place, k in enumerate(leaf_order(model.tree_)):
        np.testing.assert_array_equal(shown[place], pictures[k])
    with pytest.raises(ValueError, match=r"one picture for each of the 10 classes\. Got 3"):
        plot_tree(model, thumbnails=pictures[:3])


def test_axes_of_the_caller_are_drawn_on(digits):
    _, ax = plt.subplots()
    display = ClassTreeDisplay.from_estimator(digits[0], ax=ax)
    assert display.ax_ is ax
    _, other = plt.subplots()
    assert display.plot(ax=other).ax_ is other
    _, (ax, _) = plt.subplots(1, 2)
    assert ConfusionByTreeDisplay.from_estimator(*digits, ax=ax).figure_ is ax.figure


@pytest.mark.parametrize("usetex", [False, True])
def test_hostile_labels_are_drawn_as_text(hostile, usetex):
    model, X, y = hostile
    with plt.rc_context({"text.usetex": usetex}):
        display = plot_tree(model)
        confusion = ConfusionByTreeDisplay.from_estimator(model, X, y)
    texts = [*display.texts_, *confusion.ax_.get_yticklabels()]
    assert {text.get_text() for text in display.texts_} == {one_line(label) for label in HOSTILE}
    assert not any(text.get_parse_math() or text.get_usetex() for text in texts)
    display.figure_.canvas.draw() if not usetex else None


def test_the_confusion_is_that_of_the_predictions_in_the_order_of_the_tree(digits):
    model, X, y = digits
    display = ConfusionByTreeDisplay.from_estimator(model, X, y)
    order = leaf_order(model.tree_)
    np.testing.assert_array_equal(display.matrix_, confusion_matrix(y, model.predict(X), labels=order))
    np.testing.assert_array_equal(display.facts.confusion_matrix.toarray(), confusion_matrix(y, model.predict(X)))
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [str(k) for k in order]


def test_every_error_is_counted_at_the_node_where_the_paths_part(digits):
    model, X, y = digits
    display, tree = ConfusionByTreeDisplay.from_estimator(model, X, y), model.tree_
    errors = np.zeros(tree.n_nodes)
    for true, predicted in zip(y.tolist(), model.predict(X).tolist(), strict=True):
        if true != predicted:
            common = [n for n in tree.internal_nodes if {true, predicted} <= set(tree.classes_below(n).tolist())]
            errors[max(common)] += 1
    np.testing.assert_array_equal(display.facts.n_errors, errors)
    worst = display.worst_nodes(2)
    assert worst[0]["n_errors"] == errors.max()
    assert sum(record["n_errors"] for record in display.worst_nodes(99)) == (model.predict(X) != y).sum()
    assert worst[0]["share"] == errors.max() / errors.sum()


def test_collapsed_groups_share_a_row_of_the_confusion(digits):
    model, X, y = digits
    display = ConfusionByTreeDisplay.from_estimator(model, X, y, max_depth=1)
    assert display.matrix_.shape == (2, 2)
    assert display.matrix_.sum() == len(y)
    assert display.matrix_[0, 1] + display.matrix_[1, 0] == display.facts.n_errors[0]


def test_blocks_of_the_confusion_are_the_groups_of_the_tree(digits):
    from matplotlib.patches import Rectangle

    model, X, y = digits
    display, tree = ConfusionByTreeDisplay.from_estimator(model, X, y), model.tree_
    blocks = [patch for patch in display.ax_.patches if isinstance(patch, Rectangle)]
    assert sorted(block.get_width() for block in blocks) == sorted(
        len(tree.classes_below(node)) for node in tree.internal_nodes[1:].tolist()
    )
