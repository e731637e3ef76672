"""``margintree explain``."""

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from typer.testing import CliRunner

from margintree import MarginTreeClassifier, save_model
from margintree.cli.app import app

X, y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("explain")
    model = MarginTreeClassifier(walk="greedy", calibration_folds=0, random_state=0).fit(X, y)
    save_model(model, directory / "iris.margintree")
    dump_svmlight_file(X, y, str(directory / "iris.svm"))
    (directory / "names.txt").write_text("sepal length\nsepal width\npetal length\npetal width\n")
    lines = [",".join(map(str, [label, *row])) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    (directory / "iris.csv").write_text("\n".join(["class,a,b,c,d", *lines]) + "\n")
    return directory, model


def run(*arguments):
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


def test_rows_count_from_one_and_are_explained_as_predicted(files):
    directory, model = files
    for row in (1, 60, 150):
        done = run(directory / "iris.margintree", directory / "iris.svm", "--row", row)
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith(f"prediction: {model.predict(X[[row - 1]])[0]}\n")
        same = run(directory / "iris.margintree", directory / "iris.csv", "--row", row)
        assert same.stdout == done.stdout


def test_json_and_names_of_features(files):
    directory, model = files
    names = ("--feature-names", directory / "names.txt")
    done = run(directory / "iris.margintree", directory / "iris.svm", "--row", 51, "--json", *names, "--features", 1)
    explained = json.loads(done.stdout)
    assert explained["prediction"] == model.predict(X[[50]])[0]
    features = explained["path"][0]["features"]
    assert {f["feature"] for f in features} <= {"sepal length", "sepal width", "petal length", "petal width"}
    assert len(features) <= 2
    value = X[50] @ model.node_coef(0) + model.node_intercept(0)
    assert explained["path"][0]["decision_value"] == pytest.approx(value, abs=1e-5)


def test_classes_go_by_the_names_of_a_file(files, tmp_path):
    directory, _ = files
    (tmp_path / "species.txt").write_text("setosa\nversicolor\n[bold]virginica\n")
    done = run(directory / "iris.margintree", directory / "iris.svm", "--class-names", tmp_path / "species.txt")
    assert done.stdout.startswith("prediction: setosa")
    assert "[bold]virginica" in done.stdout
    (tmp_path / "species.txt").write_text("setosa\nversicolor\n")
    done = run(directory / "iris.margintree", directory / "iris.svm", "--class-names", tmp_path / "species.txt")
    assert done.exit_code == 1
    assert "--class-names must have 3 lines" in " ".join(done.output.split())


def test_a_picture_is_written_whole_or_not_at_all(files, tmp_path):
    directory, _ = files
    done = run(directory / "iris.margintree", directory / "iris.svm", "--plot", tmp_path / "why.svg")
    assert done.exit_code == 0
    assert (tmp_path / "why.svg").read_text().rstrip().endswith("</svg>")
    failed = run(directory / "iris.margintree", directory / "iris.svm", "--plot", tmp_path / "why.docx")
    assert failed.exit_code == 1
    assert "Use .png, .svg or .pdf" in failed.output
    assert [path.name for path in tmp_path.iterdir()] == ["why.svg"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--row", "151"), 1, "has 150 rows, numbered from 1. Got --row 151"),
        (("--row", "0"), 2, "--row"),
    ],
)
def test_rows_that_are_not_there_are_refused(files, arguments, code, message):
    directory, _ = files
    done = run(directory / "iris.margintree", directory / "iris.svm", *arguments)
    assert done.exit_code == code
    assert message in " ".join(done.output.split())


def test_estimators_without_a_tree_are_refused(files, tmp_path):
    from margintree import OneVsRestSVC

    directory, _ = files
    save_model(OneVsRestSVC(random_state=0).fit(X, np.array(list("abc"))[y]), tmp_path / "flat")
    done = run(tmp_path / "flat", directory / "iris.svm")
    assert done.exit_code == 1
    assert "Got OneVsRestSVC" in done.output
