"""Write the files of the present format that later versions must go on reading.

Run once for each format, when it is new: ``python tests/model_file/make_stored_files.py``. Never run it again to
make a test pass: files of users do not change either.
"""

import json
from pathlib import Path

import numpy as np

from margintree import (
    ConditionalProbabilityTreeClassifier,
    MarginTreeClassifier,
    OneVsOneSVC,
    OneVsRestSVC,
    save_model,
)
from margintree.model_file.files import FORMAT

MODELS = {
    "linear_tree": (MarginTreeClassifier(random_state=0, class_weight={"ant": 2.0}), "predict_proba"),
    **{
        f"{kernel}_{decide}": (MarginTreeClassifier(kernel, decide=decide, random_state=0), "predict_proba")
        for kernel in ("linear", "rbf")
        for decide in ("paths", "pairs", "rest")
    },
    "two_trees": (
        MarginTreeClassifier(walk="all", n_trees=2, decide="rest", n_finalists=3, beam_gap=0.5, random_state=0),
        "predict_proba",
    ),
    "probability_tree": (ConditionalProbabilityTreeClassifier(random_state=0), "predict_proba"),
    "linear_machines": (OneVsRestSVC(random_state=0), "decision_function"),
    "kernel_machines": (OneVsOneSVC("poly", degree=2, random_state=0), "decision_function"),
}


def main() -> None:
    rng = np.random.default_rng(0)
    labels = np.array(["ant", "bee", "cat", "dog"])[np.arange(24) % 4]
    X = rng.random((24, 15)) * (rng.random((24, 15)) < 0.4)
    rows = rng.random((6, 15)).round(3)
    for name, (model, scores_of) in MODELS.items():
        model.fit(X, labels)
        path = Path(__file__).parent / "files" / f"format_{FORMAT}_{name}.margintree"
        save_model(model, path)
        known = {
            "estimator": type(model).__name__,
            "rows": rows.tolist(),
            "labels": model.predict(rows).tolist(),
            "scores_of": scores_of,
            "scores": getattr(model, scores_of)(rows).tolist(),
        }
        path.with_suffix(".json").write_text(json.dumps(known) + "\n")


if __name__ == "__main__":
    main()
