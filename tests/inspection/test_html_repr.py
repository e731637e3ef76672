"""The picture of a fitted model in a notebook."""

from xml.etree import ElementTree

import numpy as np
from hostile_labels import HOSTILE
from sklearn import config_context

from margintree import MarginTreeClassifier
from margintree.inspection.html_repr import tree_svg
from margintree.inspection.labels import one_line
from margintree.structures.random_tree import random_tree

SVG = "{http://www.w3.org/2000/svg}"


def test_a_fitted_model_has_the_box_and_the_tree(digits):
    model, _, _ = digits
    html = model._repr_html_()
    assert "sk-container" in html
    assert "Class tree: 10 classes" in html
    assert html.count("<svg") == 1 + MarginTreeClassifier()._repr_html_().count("<svg")
    assert model._repr_mimebundle_()["text/html"].endswith("</svg></details>")


def test_an_unfitted_model_has_the_box_alone():
    assert "Class tree" not in MarginTreeClassifier()._repr_html_()


def test_the_display_setting_of_scikit_learn_holds(digits):
    with config_context(display="text"):
        assert not hasattr(digits[0], "_repr_html_")


def test_the_picture_is_well_formed_and_shows_hostile_labels_as_text(hostile):
    root = ElementTree.fromstring(tree_svg(hostile[0]))
    assert {text.text for text in root.iter(f"{SVG}text")} == {one_line(label) for label in HOSTILE}
    assert "<script>alert" not in hostile[0]._repr_html_()


def test_a_large_tree_stays_small():
    svg = tree_svg(random_tree(20_000, 0))
    assert len(svg) < 10_000
    root = ElementTree.fromstring(svg)
    sizes = [int(t.text.split("(")[1].split()[0].replace(",", "")) for t in root.iter(f"{SVG}text")]
    assert np.sum(sizes) == 20_000
