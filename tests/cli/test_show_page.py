"""``margintree show --html``: the page of a model file, with the rows of another file."""

import json
import re

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from typer.testing import CliRunner

from margintree import MarginTreeClassifier, save_model
from margintree.cli.app import app


def run(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    # Anything but an exit on purpose would be a traceback in a terminal.
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done


def data_of(page):
    return json.loads(re.search(r'type="application/json">(.*?)</script>', page.read_text("utf-8"), re.DOTALL).group(1))


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory, (X, y) = tmp_path_factory.mktemp("iris"), load_iris(return_X_y=True)
    save_model(MarginTreeClassifier(C=10, random_state=0).fit(X, y), directory / "model")
    dump_svmlight_file(X, y, str(directory / "rows.svm"), zero_based=True)
    lines = [",".join(map(repr, [*row, label])) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    (directory / "rows.csv").write_text("\n".join(["a,b,c,d,species", *lines]))
    np.savetxt(directory / "unlabelled.csv", X, delimiter=",")
    return directory


def test_a_page_is_written_instead_of_the_tree(directory, tmp_path):
    done = run("show", directory / "model", "--html", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert data_of(tmp_path / "page.html")["classes"] == ["0", "1", "2"]
    assert data_of(tmp_path / "page.html")["rows"] is None


@pytest.mark.parametrize("rows", [("rows.svm",), ("rows.csv", "--label", "species")], ids=["svmlight", "csv"])
def test_labelled_rows_give_the_confusion_matrix(directory, tmp_path, rows):
    done = run("show", directory / "model", "--html", tmp_path / "page.html", "--rows", directory / rows[0], *rows[1:])
    assert done.exit_code == 0, done.output
    data = data_of(tmp_path / "page.html")
    assert sum(data["confusion"][2::3]) == 150
    assert set(data["features"]["names"]) <= ({f"x{j}" for j in range(4)} if len(rows) == 1 else set("abcd"))


def test_rows_without_labels_show_their_ways(directory, tmp_path):
    rows = directory / "unlabelled.csv"
    assert run("show", directory / "model", "--html", tmp_path / "p.html", "--rows", rows).exit_code == 0
    data = data_of(tmp_path / "p.html")
    assert len(data["rows"]["predicted"]) == 150
    assert data["confusion"] is None


def test_labels_that_the_model_does_not_know_are_one_message_and_no_page(directory, tmp_path):
    (tmp_path / "rows.csv").write_text("7,1,2,3,4\n")
    done = run("show", directory / "model", "--html", tmp_path / "p.html", "--rows", tmp_path / "rows.csv")
    assert done.exit_code == 1
    assert "the model was fitted with" in done.output
    assert not (tmp_path / "p.html").exists()


def test_rows_without_a_page_are_a_wrong_command_line(directory):
    done = run("show", directory / "model", "--rows", directory / "rows.svm")
    assert done.exit_code == 2
    assert "--html" in done.output


def test_names_of_classes_and_features_come_from_files(directory, tmp_path):
    (tmp_path / "classes.txt").write_text("setosa\nversicolor\nvirginica\n")
    (tmp_path / "features.txt").write_text("sepal length\nsepal width\npetal length\npetal width\n")
    names = ("--class-names", tmp_path / "classes.txt", "--feature-names", tmp_path / "features.txt")
    assert run("show", directory / "model", "--html", tmp_path / "page.html", *names).exit_code == 0
    data = data_of(tmp_path / "page.html")
    assert data["classes"] == ["setosa", "versicolor", "virginica"]
    assert set(data["features"]["names"]) <= {"sepal length", "sepal width", "petal length", "petal width"}
    assert "versicolor" in run("show", directory / "model", *names[:2]).stdout
    assert run("show", directory / "model", *names[2:]).exit_code == 2
