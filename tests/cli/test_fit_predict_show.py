"""fit, predict and show as a script uses them: results, exit codes, no traceback whatever the files hold."""

import csv
import io
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hostile_labels import HOSTILE
from sklearn.datasets import dump_svmlight_file, load_digits, load_iris
from typer.testing import CliRunner

from margintree import MarginTreeClassifier, OneVsRestSVC, load_model, save_model
from margintree.cli.app import app
from margintree.cli.model_rows import METADATA_KEY
from margintree.inspection.labels import one_line


def run(*arguments, rows=None):
    done = CliRunner().invoke(app, [str(a) for a in arguments], input=rows)
    # Anything but an exit on purpose would be a traceback in a terminal.
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    directory = tmp_path_factory.mktemp("iris")
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    order = np.random.default_rng(0).permutation(len(y))
    for name, part in (("train", order[:100]), ("test", order[100:])):
        dump_svmlight_file(X[part], y[part], str(directory / f"{name}.svm"), zero_based=True)
        with (directory / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["sepal length", "sepal width", "petal length", "petal width", "species"])
            writer.writerows([*map(repr, row), label] for row, label in zip(X[part].tolist(), names[part], strict=True))
    done = run("fit", directory / "train.svm", "-C", 10, "-o", directory / "model")
    assert done.exit_code == 0, done.output
    return directory


def test_fit_saves_the_model_that_python_would_fit(iris):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    expected = MarginTreeClassifier(C=10.0, random_state=0).fit(X[order[:100]], y[order[:100]])
    np.testing.assert_array_equal(load_model(iris / "model").predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize(("options", "n_trees"), [((), 1), (("--trees", 2), 2)], ids=str)
def test_there_is_one_tree_unless_the_command_line_asks_for_more(iris, tmp_path, options, n_trees):
    done = run("fit", iris / "train.svm", *options, "-o", tmp_path / "m")
    assert done.exit_code == 0, done.output
    model = load_model(tmp_path / "m")
    assert (model.n_trees, len(model.trees_)) == (n_trees, n_trees)


def rewritten(source, target, columns, names=None):
    """Write some columns of a CSV file in another order, under their names or others; no names leave the line out."""
    with source.open(newline="") as stream:
        lines = [[line[j] for j in columns] for line in csv.reader(stream)]
    with target.open("w", newline="") as stream:
        csv.writer(stream).writerows([names, *lines[1:]] if names else lines)


def test_columns_of_csv_files_go_by_their_names(iris, tmp_path):
    fitted = run("fit", iris / "train.csv", "--label", "species", "-o", tmp_path / "m")
    assert fitted.exit_code == 0, fitted.output
    assert load_model(tmp_path / "m").feature_names_in_.tolist() == [
        *("sepal length", "sepal width", "petal length", "petal width")
    ]
    straight = run("predict", tmp_path / "m", iris / "test.csv", "--label", "species")
    for columns in ([4, 2, 0, 3, 1], [2, 0, 3, 1]):
        rewritten(iris / "test.csv", tmp_path / "turned.csv", columns)
        turned = run("predict", tmp_path / "m", tmp_path / "turned.csv")
        assert turned.exit_code == 0, turned.output
        assert turned.stdout == straight.stdout
    tested = run("fit", iris / "train.csv", "--test", iris / "test.csv", "--label", "species", "-o", tmp_path / "m")
    rewritten(iris / "test.csv", tmp_path / "turned.csv", [2, 4, 0, 3, 1])
    again = run(
        *("fit", iris / "train.csv", "--test", tmp_path / "turned.csv", "--label", "species", "-o", tmp_path / "m")
    )
    assert again.stdout == tested.stdout


def test_columns_of_other_names_are_refused(iris, tmp_path):
    run("fit", iris / "train.csv", "--label", "species", "-o", tmp_path / "m")
    rewritten(iris / "test.csv", tmp_path / "other.csv", [0, 1, 2, 3], ["sepal length", "sepal width", "a", "b"])
    refused = run("predict", tmp_path / "m", tmp_path / "other.csv")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "has no column 'petal length', and 1 more of the" in " ".join(refused.stderr.split())


def test_fit_prints_the_accuracy_and_nothing_else_to_standard_output(iris, tmp_path):
    done = run("fit", iris / "train.csv", "--test", iris / "test.csv", "--label", "species", "-o", tmp_path / "m")
    assert done.exit_code == 0, done.output
    word, number = done.stdout.split()
    assert word == "accuracy"
    assert 0.8 < float(number) <= 1.0
    assert "100 rows, 4 columns, 3 classes" in done.stderr
    quiet = run("fit", iris / "train.svm", "-q", "-o", tmp_path / "m")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_predict_prints_a_label_per_row_and_the_accuracy_aside(iris):
    done = run("predict", iris / "model", iris / "test.svm")
    X, y = load_iris(return_X_y=True)
    part = np.random.default_rng(0).permutation(len(y))[100:]
    expected = load_model(iris / "model").predict(X[part])
    assert done.stdout.split() == [str(label) for label in expected]
    assert f"accuracy {np.mean(expected == y[part]):.4f} on 50 rows" in done.stderr


@pytest.mark.parametrize("option", [["--top-k", 2], ["--proba"]])
def test_rankings_and_probabilities_are_csv_with_names(iris, tmp_path, option):
    done = run("predict", iris / "model", iris / "test.svm", *option, "-o", tmp_path / "out.csv")
    assert (done.exit_code, done.stdout) == (0, "")
    with (tmp_path / "out.csv").open(newline="") as stream:
        header, *lines = csv.reader(stream)
    X, y = load_iris(return_X_y=True)
    rows = X[np.random.default_rng(0).permutation(len(y))[100:]]
    model = load_model(iris / "model")
    if option == ["--proba"]:
        assert header == ["0", "1", "2"]
        np.testing.assert_allclose(np.array(lines, dtype=float), model.predict_proba(rows), rtol=1e-5)
    else:
        classes, probabilities = model.predict_top_k(rows, 2)
        assert header == ["label_1", "probability_1", "label_2", "probability_2"]
        assert [[line[0], line[2]] for line in lines] == classes.astype(str).tolist()
        np.testing.assert_allclose([[float(line[1]), float(line[3])] for line in lines], probabilities, rtol=1e-5)


def test_csv_without_labels_and_with_text_labels(iris, tmp_path):
    run("fit", iris / "train.csv", "--label", "species", "-o", tmp_path / "m")
    with_labels = run("predict", tmp_path / "m", iris / "test.csv", "--label", "species")
    lines = (iris / "test.csv").read_text().splitlines()
    (tmp_path / "bare.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines))
    without = run("predict", tmp_path / "m", tmp_path / "bare.csv")
    assert with_labels.stdout == without.stdout
    assert set(without.stdout.split()) == {"setosa", "versicolor", "virginica"}
    assert "accuracy" in with_labels.stderr
    assert without.stderr == ""


@pytest.mark.parametrize("header", [True, False])
def test_predict_explain_and_show_remember_the_column_of_the_label_and_the_format(iris, tmp_path, header):
    for part in ("train", "test"):
        # The label is neither first nor last, and the names of the files tell nothing.
        lines = [line.split(",") for line in (iris / f"{part}.csv").read_text().splitlines()[0 if header else 1 :]]
        (tmp_path / part).write_text("".join(",".join([a, b, label, c, d]) + "\n" for a, b, c, d, label in lines))
    label = "species" if header else "3"
    fitted = run("fit", tmp_path / "train", "--format", "csv", "--label", label, "-o", tmp_path / "m")
    assert fitted.exit_code == 0, fitted.output
    done = run("predict", tmp_path / "m", tmp_path / "test")
    explicit = run("predict", tmp_path / "m", tmp_path / "test", "--format", "csv", "--label", label)
    assert (done.exit_code, done.stdout, done.stderr) == (0, explicit.stdout, explicit.stderr)
    assert float(done.stderr.split()[1]) > 0.9
    explained = run("explain", tmp_path / "m", tmp_path / "test")
    assert (explained.exit_code, done.stdout.split()[0] in explained.stdout) == (0, True), explained.output
    page = run("show", tmp_path / "m", "--html", tmp_path / "page.html", "--rows", tmp_path / "test")
    assert page.exit_code == 0, page.output


@pytest.mark.parametrize("kind", ["csv", "svm"])
def test_a_dash_is_standard_input(iris, tmp_path, kind):
    train, test = ((iris / f"{part}.{kind}").read_bytes() for part in ("train", "test"))
    options = ("--format", "csv", "--label", "species") if kind == "csv" else ("--format", "svmlight")
    refused = run("fit", "-", "-o", tmp_path / "m", rows=train)
    assert (refused.exit_code, "Use --format svmlight or --format csv or" in refused.stderr) == (1, True)
    fitted = run("fit", "-", *options, "-o", tmp_path / "m", rows=train)
    assert fitted.exit_code == 0, fitted.output
    done = run("predict", tmp_path / "m", "-", rows=test)
    assert (done.exit_code, done.output) == (0, run("predict", tmp_path / "m", iris / f"test.{kind}").output)
    assert run("explain", tmp_path / "m", "-", rows=test).exit_code == 0
    empty = run("predict", tmp_path / "m", "-", rows=b"")
    assert (empty.exit_code, "standard input contains no rows" in empty.stderr) == (1, True)


def test_a_dash_as_output_is_standard_output(iris, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("predict", iris / "model", iris / "test.svm", "-o", "-")
    assert done.stdout == run("predict", iris / "model", iris / "test.svm").stdout != ""
    assert not Path("-").exists()


def test_a_fit_on_names_helps_to_read_rows_without_them_and_without_labels(iris, tmp_path):
    run("fit", iris / "train.csv", "--label", "species", "-o", tmp_path / "m")
    expected = run("predict", tmp_path / "m", iris / "test.csv")
    assert "accuracy" in expected.stderr
    lines = (iris / "test.csv").read_text().splitlines()
    (tmp_path / "nameless.csv").write_text("\n".join(lines[1:]))
    assert run("predict", tmp_path / "m", tmp_path / "nameless.csv").output == expected.output
    (tmp_path / "bare.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines[1:]))
    assert run("predict", tmp_path / "m", tmp_path / "bare.csv").output == expected.stdout


def test_svmlight_columns_that_start_at_one_are_noticed_and_remembered(iris, tmp_path):
    for part in ("train", "test"):
        lines = (iris / f"{part}.svm").read_text().splitlines()
        moved = [re.sub(r"(\d+):", lambda found: f"{int(found[1]) + 1}:", line) for line in lines]
        (tmp_path / part).write_text("\n".join(moved))
    fitted = run("fit", tmp_path / "train", "--test", tmp_path / "test", "-C", 10, "-o", tmp_path / "m")
    assert "100 rows, 4 columns, 3 classes" in fitted.stderr
    assert "column indices are taken to start at 1" in fitted.stderr
    assert (
        run("predict", tmp_path / "m", tmp_path / "test").output
        == run("predict", iris / "model", iris / "test.svm").output
    )
    refused = run("predict", tmp_path / "m", iris / "test.svm")
    assert (refused.exit_code, "has a column 0" in refused.stderr) == (1, True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": 1, "label": null, "column": null, "one_based": false}'])
def test_a_model_file_whose_description_of_the_rows_is_damaged_is_refused(iris, tmp_path, text):
    save_model(load_model(iris / "model"), tmp_path / "m", metadata={METADATA_KEY: text})
    refused = run("predict", tmp_path / "m", iris / "test.svm")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "cannot be loaded: " in refused.stderr


def test_svmlight_rows_may_be_narrower_or_wider_than_the_model(iris, tmp_path):
    model = load_model(iris / "model")
    (tmp_path / "narrow").write_text("0 0:5.1 1:3.5\n")
    (tmp_path / "wide").write_text("0 0:5.1 1:3.5 4:100 90000000:1\n")
    expected = str(model.predict([[5.1, 3.5, 0.0, 0.0]])[0])
    for name in ("narrow", "wide"):
        assert run("predict", iris / "model", tmp_path / name).stdout.split() == [expected]


def test_show_prints_parameters_sizes_and_the_tree(iris):
    done = run("show", iris / "model", "--verify")
    assert done.exit_code == 0
    assert "MarginTreeClassifier" in done.stdout
    assert "C=10.0, random_state=0" in done.stdout
    assert f"{(iris / 'model').stat().st_size:,} bytes" in done.stdout
    assert load_model(iris / "model").tree_.to_text(["0", "1", "2"]) in done.stdout
    assert "… 3 classes" in run("show", iris / "model", "--depth", 0).stdout


def test_what_a_file_holds_cannot_steer_the_terminal(iris, tmp_path):
    X, y = load_iris(return_X_y=True)
    labels = np.array(["\x1b[2Jset", "a\nb", "größer 大"])[y]
    save_model(MarginTreeClassifier(random_state=0).fit(X, labels), tmp_path / "odd")
    done = run("show", tmp_path / "odd")
    assert "\x1b" not in done.stdout
    assert "\\x1b[2Jset" in done.stdout
    assert "größer 大" in done.stdout
    (tmp_path / "odd.csv").write_text("\x1b[2J,a\nfox,1\n")
    refused = run("predict", iris / "model", tmp_path / "odd.csv", "--label", "kind")
    assert refused.exit_code == 1
    fitted = run("fit", tmp_path / "odd.csv", "--label", "kind", "-o", tmp_path / "m")
    assert "\x1b" not in fitted.stderr + refused.stderr
    assert "\\x1b[2J" in fitted.stderr


def test_labels_are_printed_as_text_and_predicted_as_they_are(tmp_path):
    X, y = load_digits(n_class=len(HOSTILE), return_X_y=True)
    model = MarginTreeClassifier(random_state=0).fit(X[:300], HOSTILE[y[:300]])
    save_model(model, tmp_path / "odd")
    dump_svmlight_file(X[300:400], y[300:400], str(tmp_path / "rows.svm"))
    shown, explained = run("show", tmp_path / "odd"), run("explain", tmp_path / "odd", tmp_path / "rows.svm")
    for line in [*shown.stdout.split("\n"), *explained.stdout.split("\n")]:
        assert line.isprintable()
    assert [label for label in HOSTILE if one_line(label) not in shown.stdout] == []
    assert f"prediction: {one_line(model.predict(X[300:301])[0])}, " in explained.stdout
    predicted = run("predict", tmp_path / "odd", tmp_path / "rows.svm")
    labels = [label for (label,) in csv.reader(io.StringIO(predicted.stdout, newline=""))]
    assert set(labels) == set(HOSTILE)
    assert labels == model.predict(X[300:400]).tolist()


def test_show_and_predict_take_a_model_without_a_tree(iris, tmp_path):
    save_model(OneVsRestSVC(random_state=0).fit(*load_iris(return_X_y=True)), tmp_path / "flat")
    assert "OneVsRestSVC" in run("show", tmp_path / "flat").stdout
    assert run("predict", tmp_path / "flat", iris / "test.svm").exit_code == 0
    refused = run("predict", tmp_path / "flat", iris / "test.svm", "--top-k", 2)
    assert refused.exit_code == 1
    assert "Leave --top-k out" in refused.stderr


def test_what_cannot_be_used_gives_exit_code_1_a_reason_and_no_file(iris, tmp_path):
    (tmp_path / "one").write_text("1 1:2\n1 1:3\n")
    (tmp_path / "text").write_text("hello\n")
    os.mkfifo(tmp_path / "pipe")
    cases = {
        ("fit", tmp_path / "missing", "-o", tmp_path / "m"): "No such file",
        ("fit", tmp_path, "-o", tmp_path / "m"): "Is a directory",
        ("fit", tmp_path / "one", "-o", tmp_path / "m"): "at least 2 classes",
        ("fit", tmp_path / "text", "-o", tmp_path / "m"): "could not be read as svmlight",
        ("fit", iris / "train.svm", "-o", tmp_path / "no" / "m"): "does not exist. Create it",
        # Found out before anything is read, let alone learned.
        ("fit", tmp_path / "missing", "-o", tmp_path): "Is a directory",
        ("predict", tmp_path / "missing", iris / "test.svm", "-o", tmp_path): "Is a directory",
        ("fit", tmp_path / "missing", "-o", tmp_path / "pipe"): "not a regular file",
        ("fit", iris / "train.svm", "--test", tmp_path / "text", "-o", tmp_path / "m"): "could not be read",
        ("predict", tmp_path / "missing", iris / "test.svm"): "No such file",
        ("predict", iris / "train.svm", iris / "test.svm"): "cannot be loaded: it is not a margintree model file",
        ("predict", iris / "model", tmp_path / "text", "-o", tmp_path / "m"): "could not be read",
        ("predict", iris / "model", iris / "test.svm", "--top-k", 4, "-o", tmp_path / "m"): "k must be",
        ("show", iris / "train.svm"): "cannot be loaded: it is not a margintree model file",
    }
    for arguments, message in cases.items():
        done = run(*arguments)
        assert done.exit_code == 1, arguments
        assert message in done.stderr, (arguments, done.stderr)
        assert done.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "pipe", "text"]


def test_a_command_line_that_makes_no_sense_gives_exit_code_2(iris, tmp_path):
    for arguments in (
        ("fit", iris / "train.svm"),
        ("fit", iris / "train.svm", "-o", tmp_path / "m", "--kernel", "quantum"),
        ("fit", iris / "train.svm", "-o", tmp_path / "m", "-C", -1),
        ("fit", iris / "train.svm", "-o", tmp_path / "m", "--balance", 2),
        ("fit", iris / "train.svm", "-o", tmp_path / "m", "--jobs", 0),
        ("predict", iris / "model", iris / "test.svm", "--jobs", 0),
        ("predict", iris / "model"),
        ("fit", "-", "--test", "-", "--format", "csv", "-o", tmp_path / "m"),
        ("predict", iris / "model", iris / "test.svm", "--top-k", 0),
        ("predict", iris / "model", iris / "test.svm", "--top-k", 2, "--proba"),
        ("show",),
    ):
        assert run(*arguments).exit_code == 2, arguments
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["fit", "predict", "show"])
def test_help_shows_an_example(command):
    done = run(command, "--help")
    assert done.exit_code == 0
    assert f"Example: margintree {command} letter" in done.output
    assert "Exit code: 0" in done.output


@pytest.mark.parametrize("width", [60, 80])
def test_paragraphs_of_the_help_fill_the_terminal(width):
    shown = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": str(width)}).output
    paragraph = next(part for part in re.split(r"\n\s*\n", shown) if "A line of an svmlight file" in part)
    lines = [line.strip() for line in paragraph.strip().splitlines()]
    # No line has room for the first word of the next one.
    assert len(lines) > 3
    assert all(len(line) + 1 + len(after.split()[0]) > width - 2 for line, after in pairwise(lines))
    assert max(map(len, lines)) <= width


def margintree(*arguments, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "margintree", *map(str, arguments)], **pipes, **options)


def test_a_real_process_has_the_exit_codes_and_no_traceback(iris, tmp_path):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    with margintree("show", iris / "model", env=environment) as shown:
        output, errors = shown.communicate()
        assert (shown.returncode, errors) == (0, "")
        assert "MarginTreeClassifier" in output
    with margintree("predict", iris / "model", "-", stdin=subprocess.PIPE) as piped:
        output, errors = piped.communicate((iris / "test.svm").read_text())
        assert (piped.returncode, len(output.split())) == (0, 50)
        assert errors.splitlines()[-1].startswith("accuracy ")  # a first run may also say that it compiles
    (tmp_path / "bad").write_bytes(b"\xff\0\n1 2:")
    with margintree("predict", iris / "model", tmp_path / "bad") as refused:
        output, errors = refused.communicate()
        assert (refused.returncode, output) == (1, "")
        assert errors.startswith("Error: ")
        assert "Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_fit_with_130_and_leaves_nothing(tmp_path):
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.choice(len(y), 12000)
    dump_svmlight_file((X[rows] + rng.normal(size=(12000, 64))).round(2), rng.permutation(y[rows]), str(tmp_path / "t"))
    with margintree("fit", tmp_path / "t", "--kernel", "rbf", "-C", 1000, "-o", tmp_path / "m") as child:
        assert "12000 rows" in child.stderr.readline()
        time.sleep(1.0)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=60)
        assert time.monotonic() - began < 4.0
    assert (child.returncode, output, errors) == (130, "", "Interrupted; no partial file was left behind.\n")
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
