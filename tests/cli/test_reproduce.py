"""``margintree reproduce`` as a user starts it."""

import os
import subprocess
import sys

import pytest

from margintree.experiments.results import read


def reproduce(*arguments, cwd, **environment):
    command = [sys.executable, "-m", "margintree", "reproduce", *arguments]
    # Without MARGINTREE_DATA, unless a test gives one.
    variables = {k: v for k, v in os.environ.items() if k != "MARGINTREE_DATA"} | {"COLUMNS": "100"} | environment
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=variables)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    directory = tmp_path_factory.mktemp("quick")
    arguments = ["--only-method", "MSM (ours)", "--only-method", "FT (no bias)", "--only-method", "1vsR"]
    return directory, reproduce(*arguments, cwd=directory)


def test_without_data_the_quick_run_draws_the_tree_and_the_tables_and_writes_the_page(quick):
    directory, done = quick
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"digit {k}" in done.stdout for k in range(10))
    assert "Comparison with the paper" in done.stdout
    assert "Comparison for users" in done.stdout
    assert all(method in done.stdout for method in ("MSM (ours)", "FT", "1vsR"))
    assert (directory / "reproduction" / "quick" / "index.html").read_text().startswith("<!doctype html>")


def test_the_quick_run_finds_margin_trees_ahead_of_filter_trees_and_level_with_1vsr(quick):
    results = read(quick[0] / "reproduction" / "quick" / "results.jsonl")
    means = {}
    for row in results.of_kind("split"):
        if row["kernel"] == "linear":
            means.setdefault(row["method"], []).append((row["accuracy"], row["evaluations"]))
    margin, filtered, rest = (
        [sum(x) / 3 for x in zip(*means[m], strict=True)] for m in ("MSM (ours)", "FT (no bias)", "1vsR")
    )
    assert margin[0] > filtered[0] + 1.0
    assert margin[0] > rest[0] - 1.0
    assert filtered[1] < 5.0 < rest[1]


def test_a_second_run_does_nothing_again(quick):
    path = quick[0] / "reproduction" / "quick" / "results.jsonl"
    before = path.read_bytes()
    done = reproduce("--quick", "--only-method", "FT (no bias)", cwd=quick[0])
    assert done.returncode == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick", "--only-method", "SVM"], "Unknown method 'SVM' for --only-method; the methods are MSM (paper)"),
        (["--quick", "--only-set", "usps"], "Unknown set 'usps' for --only-set; the sets are digits."),
    ],
)
def test_a_wrong_name_is_told_with_the_right_ones(tmp_path, arguments, message):
    done = reproduce(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_results_of_the_other_protocol_in_the_directory_are_refused(quick, tmp_path):
    directory = quick[0] / "reproduction" / "quick"
    before = (directory / "results.jsonl").read_bytes()
    arguments = ["--full", "--output", str(directory), "--only-set", "vowel", "--only-method", "FT (no bias)"]
    # A data directory that holds nothing, and no network: nothing is fetched before the file is refused.
    done = reproduce(*arguments, cwd=tmp_path, MARGINTREE_DATA=str(tmp_path), SCIKIT_LEARN_DATA=str(tmp_path))
    assert done.returncode == 1
    assert "cannot be mixed" in done.stdout
    assert (directory / "results.jsonl").read_bytes() == before
