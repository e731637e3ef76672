"""Class trees of maximum separating margin.

``MarginTreeClassifier`` learns a binary tree over the classes and classifies by walking it; the ways to
divide a node's classes are in ``margintree.splits``.
"""

# Importing typing takes longer than the rest of this file, and Ctrl-C is answered only once the package is there.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from margintree.class_tree import ClassTree
    from margintree.estimators.all_together import AllTogetherSVC
    from margintree.estimators.conditional_probability_tree import ConditionalProbabilityTreeClassifier
    from margintree.estimators.decision_dag import DecisionDAGClassifier
    from margintree.estimators.filter_tree import FilterTreeClassifier
    from margintree.estimators.label_tree import LabelTreeClassifier
    from margintree.estimators.margin_tree import MarginTreeClassifier
    from margintree.estimators.one_vs_one import OneVsOneSVC
    from margintree.estimators.one_vs_rest import OneVsRestSVC
    from margintree.estimators.output_code import OutputCodeSVC
    from margintree.estimators.polynomial_features import PolynomialKernelFeatures
    from margintree.model_file.errors import ModelFileError
    from margintree.model_file.files import load_model, read_metadata, save_model
    from margintree.onnx_export import to_onnx

__version__ = "0.1.0"

__all__ = [
    "AllTogetherSVC",
    "ClassTree",
    "ConditionalProbabilityTreeClassifier",
    "DecisionDAGClassifier",
    "FilterTreeClassifier",
    "LabelTreeClassifier",
    "MarginTreeClassifier",
    "ModelFileError",
    "OneVsOneSVC",
    "OneVsRestSVC",
    "OutputCodeSVC",
    "PolynomialKernelFeatures",
    "__version__",
    "load_model",
    "read_metadata",
    "save_model",
    "to_onnx",
]

# Imported on first use, so that the command line answers at once.
_HOMES = {
    "AllTogetherSVC": "margintree.estimators.all_together",
    "ClassTree": "margintree.class_tree",
    "ConditionalProbabilityTreeClassifier": "margintree.estimators.conditional_probability_tree",
    "DecisionDAGClassifier": "margintree.estimators.decision_dag",
    "FilterTreeClassifier": "margintree.estimators.filter_tree",
    "LabelTreeClassifier": "margintree.estimators.label_tree",
    "MarginTreeClassifier": "margintree.estimators.margin_tree",
    "ModelFileError": "margintree.model_file.errors",
    "OneVsOneSVC": "margintree.estimators.one_vs_one",
    "OneVsRestSVC": "margintree.estimators.one_vs_rest",
    "OutputCodeSVC": "margintree.estimators.output_code",
    "PolynomialKernelFeatures": "margintree.estimators.polynomial_features",
    "load_model": "margintree.model_file.files",
    "read_metadata": "margintree.model_file.files",
    "save_model": "margintree.model_file.files",
    "to_onnx": "margintree.onnx_export",
}


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
