"""A protocol that takes seconds, and results without a run: the paper's own figures as if they were ours."""

from dataclasses import replace

import pytest

from margintree.datasets import DATA_SETS
from margintree.experiments import paper
from margintree.experiments.job import Job
from margintree.experiments.methods import METHODS, READING, READINGS
from margintree.experiments.protocol import FULL, QUICK, Protocol
from margintree.experiments.results import opened_results, read

GROUPING = "((((1,7),2),((8,9),0)),(((4,6),5),3));"
SPLITTING = "((((1,8),2),((7,4),0)),(((9,6),5),3));"
FLAT = {"1vs1", "1vsR", "1vs1 (no bias)", "1vsR (no bias)", "DDAG"}
# Accuracy of the methods that the paper lacks, relative to others of its figures.
STAND_INS = {"MSM (ours)": ("MSM", 0.5), "DDAG": ("1vs1", -0.25), "1vs1": ("1vs1", 0.0), "1vsR": ("1vsR", 0.0)}


@pytest.fixture(scope="session")
def tiny() -> Protocol:
    return replace(
        QUICK,
        name="tiny",
        settings=(("digits", "linear"),),
        n_splits=2,
        n_folds=2,
        costs=(0.01, 1.0),
        timed_rows=5,
        curve_classes=(2, 3),
        digits_setting=("digits", "linear"),
    )


def paper_values(method, data_set, kernel):
    """Return accuracy and seconds of the paper's table, with the methods that it lacks near others."""
    name, shift = STAND_INS.get(method.name, (method.paper_name, 0.0))
    accuracy, seconds = paper.accuracy(name, data_set, kernel), paper.seconds(name, data_set, kernel)
    return (accuracy[0] + shift, seconds) if accuracy else None


def rows_as_in_the_paper():
    """Yield rows of a whole run whose figures are those of the paper."""
    done = {"status": "done", "seconds": 0.1}
    for data_set, kernel in paper.SETTINGS:
        facts = DATA_SETS[data_set]
        for method in METHODS.values():
            if method.comparison == READING:
                continue
            values = paper_values(method, data_set, kernel)
            if values is None:
                continue
            parameters = (("C", 1.0), ("gamma", 0.1)) if kernel == "rbf" else (("C", 1.0),)
            evaluations = {"1vs1": facts.n_classes * (facts.n_classes - 1) / 2, "1vsR": float(facts.n_classes)}
            measured = {
                "evaluations": evaluations.get(method.title, 3.5),
                "fit_seconds": 0.5,
                "batch_seconds": 0.1,
                "n_train": facts.n_train_paper,
                "n_test": facts.n_test_paper,
                "n_features": facts.n_features,
                "n_classes": facts.n_classes,
            }
            for number in range(7):
                job = Job("split", method.name, data_set, kernel, parameters, number)
                row = {**job.described(), **done, **measured, "accuracy": values[0] + 0.1 * (number - 3)}
                if method.name not in FLAT and (data_set, kernel) == FULL.digits_setting:
                    row["tree"] = GROUPING if method.name.startswith("MSM") else SPLITTING
                yield row
            time = Job("time", method.name, data_set, kernel, parameters)
            yield {
                **time.described(),
                **done,
                "row_seconds": dict.fromkeys(("predict", "compiled"), values[1] / facts.n_test_paper),
                "fit_seconds": 0.5,
            }
            if (data_set, kernel) == FULL.curve_setting:
                for n in FULL.curve_classes:
                    growth = {"1vs1": n * n / 10, "1vsR": float(n)}.get(method.title, n**0.5)
                    curve = Job("curve", method.name, data_set, kernel, parameters, n)
                    yield {
                        **curve.described(),
                        **done,
                        "row_seconds": {"predict": 1e-5 * growth},
                        "evaluations": growth,
                    }
    for reading in READINGS.values():
        for name in reading.methods:
            for number in range(7):
                job = Job("split", name, reading.name, reading.kernel, (("C", 1.0),), number)
                accuracy = paper.accuracy(METHODS[name].paper_name, reading.data_set, reading.kernel)[0]
                yield {**job.described(), **done, **measured, "accuracy": accuracy + 0.1 * (number - 3)}
    pictures = Job("pictures", "", *FULL.digits_setting)
    yield {**pictures.described(), **done, "height": 2, "width": 2, "pictures": ["AECA/w=="] * 10}


@pytest.fixture(scope="session")
def paper_results_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("paper") / "results.jsonl"
    with opened_results(path, FULL) as file:
        for row in rows_as_in_the_paper():
            file.add(row)
    return path


@pytest.fixture
def paper_results(paper_results_path):
    return read(paper_results_path)
