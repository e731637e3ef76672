"""What looking at trees costs those who do not look."""

import subprocess
import sys

import pytest

USE = "from sklearn.datasets import load_iris; X, y = load_iris(return_X_y=True); "
FIT = "model = margintree.MarginTreeClassifier(walk='greedy', calibration_folds=0).fit(X, y); "


@pytest.mark.parametrize(
    "code",
    [
        "import margintree",
        "import margintree, margintree.inspection; from margintree import MarginTreeClassifier",
        f"import margintree; {USE}{FIT}str(model.explain(X[0])); model._repr_html_()",
    ],
    ids=["the package", "the room", "a fit, an explanation and a picture for notebooks"],
)
def test_neither_drawing_nor_documentation_packages_are_imported(code):
    code += "; import sys; print([m for m in ('matplotlib', 'networkx', 'sphinx', 'numpydoc') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("missing", "call", "message"),
    [
        ("matplotlib", "plot_tree(tree)", "pip install matplotlib"),
        ("networkx", "to_networkx(tree)", "pip install networkx"),
    ],
)
def test_a_missing_library_is_named_with_the_way_to_get_it(missing, call, message):
    code = (
        f"import sys; sys.modules['{missing}'] = None\n"
        "from margintree import ClassTree\nfrom margintree.inspection import *\ntree = ClassTree.from_nested((0, 1))\n"
        f"try:\n    {call}\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert message in done.stdout
