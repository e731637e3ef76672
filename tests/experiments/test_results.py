"""The results file when something goes wrong: torn lines, a full disk, two runs at once."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from margintree.experiments import results
from margintree.experiments.results import ResultsError, code_hash, opened_results, read

SOUND = {
    **{"method": "FT", "set": "digits", "kernel": "linear", "parameters": {"C": 1.0}, "number": 0},
    **{"n_train": 500, "n_test": 1297, "n_features": 64, "n_classes": 10},
    **{"accuracy": 90.0, "evaluations": 3.0, "fit_seconds": 0.1},
}


def row(key, status="done", **measured):
    return {"kind": "split", "key": key, "status": status, **SOUND, **measured}


WRONG = (
    {"accuracy": "90"},
    {"accuracy": None},
    {"n_classes": 2**70},
    {"parameters": {"C": "<b>"}},
    {"parameters": {"C": float("nan")}},
    {"parameters": []},
    {"accuracy": float("inf")},
    {"key": ["a"]},
    {"tree": 1},
    {"tree": "((0,1)"},
    {"tree": "x"},
)


def written(path, protocol, *keys):
    with opened_results(path, protocol) as file:
        for key in keys:
            file.add(row(key, accuracy=90.0))
    return path


def test_rows_come_back_with_the_facts_of_their_run(tmp_path, tiny):
    results = read(written(tmp_path / "results.jsonl", tiny, "a", "b"))
    assert list(results.done) == ["a", "b"]
    facts = results.runs[results.done["a"]["run"]]
    assert {"python", "margintree", "numpy", "numba"} <= set(facts["versions"])
    assert "cores" in facts["machine"]


def test_only_a_line_feed_ends_a_line(tmp_path, tiny):
    """Anything else would take the lines behind it for an incomplete end, which the next run removes."""
    path = written(tmp_path / "results.jsonl", tiny, "a", "b")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(lines[0] + b"\n" + b"\r".join(lines[1:]))
    before = path.read_bytes() + b"\n"
    path.write_bytes(before)
    with pytest.raises(ResultsError, match=r"Line 2 of .* is not JSON"), opened_results(path, tiny):
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize("n_bytes", [1, 20, 60])
def test_a_torn_last_line_is_left_out_and_repaired(tmp_path, tiny, n_bytes):
    path = written(tmp_path / "results.jsonl", tiny, "a", "b")
    whole = path.read_bytes()
    path.write_bytes(whole[:-n_bytes])
    assert list(read(path).done) == ["a"]
    written(path, tiny, "b")
    assert list(read(path).done) == ["a", "b"]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_file_torn_in_its_first_line_starts_anew(tmp_path, tiny):
    path = tmp_path / "results.jsonl"
    path.write_bytes(b'{"kind": "proto')
    written(path, tiny, "a")
    assert list(read(path).done) == ["a"]


def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path, tiny):
    path = written(tmp_path / "results.jsonl", tiny, "a", "b")
    lines = path.read_text().splitlines(keepends=True)
    lines[2] = lines[2][:30] + "\n"
    path.write_text("".join(lines))
    with pytest.raises(ResultsError, match="Line 3 of"):
        read(path)


def test_results_of_another_protocol_are_refused_and_left_alone(tmp_path, tiny):
    path = written(tmp_path / "results.jsonl", tiny, "a")
    before = path.read_bytes()
    with pytest.raises(ResultsError, match="cannot be mixed"), opened_results(path, replace(tiny, n_splits=5)):
        pass
    assert path.read_bytes() == before


def test_results_of_other_code_are_refused_and_left_alone(tmp_path, tiny, monkeypatch):
    path = written(tmp_path / "results.jsonl", tiny, "a")
    before = path.read_bytes()
    monkeypatch.setattr(results, "code_hash", lambda: "0123456789abcdef")
    with pytest.raises(ResultsError, match="Results of another code cannot be mixed"), opened_results(path, tiny):
        pass
    assert path.read_bytes() == before


def test_the_hash_is_that_of_the_code_that_computes(tmp_path, monkeypatch):
    package = tmp_path / "margintree"
    for name in (
        "solvers/newton.py",
        "cli/app.py",
        "experiments/job.py",
        "experiments/report.py",
        "experiments/results.py",
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("value = 1\n")
    monkeypatch.setattr(results, "__file__", str(package / "experiments" / "results.py"))
    hashes = {}
    for name in ("", "cli/app.py", "experiments/report.py", "solvers/newton.py", "experiments/job.py"):
        if name:
            (package / name).write_text("value = 2\n")
        hashes[name] = code_hash.__wrapped__()
    assert hashes[""] == hashes["cli/app.py"] == hashes["experiments/report.py"]
    assert len({hashes[""], hashes["solvers/newton.py"], hashes["experiments/job.py"]}) == 3


def test_the_first_run_knows_its_protocol(tmp_path, tiny):
    with opened_results(tmp_path / "results.jsonl", tiny) as file:
        assert file.results.protocol["name"] == "tiny"
        assert file.results.protocol["code"] == code_hash()


def test_a_file_that_is_no_results_file_is_refused_and_left_alone(tmp_path, tiny):
    path = tmp_path / "results.jsonl"
    line = json.dumps({**row("a"), "run": "b"}) + "\n"
    path.write_text(line)
    with pytest.raises(ResultsError, match="not a results file"), opened_results(path, tiny):
        pass
    assert path.read_text() == line


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1, 2]", "is not an object with fields"),
        pytest.param("[" * 100_000, "is not JSON: maximum recursion", id="nested deeply"),
        ('{"kind": "\\ud800"}', "is not JSON: .*surrogates not allowed"),
        ("{}", "has no 'kind'"),
        ('{"kind": ["a"]}', "has no 'kind'"),
        ('{"kind": "other"}', "has no 'key'"),
        ('{"kind": "run", "run": "a", "date": "b", "machine": "c"}', "has no 'versions'"),
        ('{"kind": "run", "run": "a", "date": "b", "machine": "c", "versions": "1.0"}', "has an invalid 'versions'"),
        ('{"kind": "split", "key": "a", "run": "b"}', "has no 'status'"),
        ('{"kind": "split", "status": "maybe"}', "has an invalid 'status'"),
        ('{"kind": "split", "key": "a", "status": "failed", "run": "b"}', "has no 'error'"),
        *((json.dumps({**row("b"), "run": "a", **wrong}), f"has an invalid '{min(wrong)}'") for wrong in WRONG),
    ],
)
def test_a_line_that_lacks_what_readers_need_is_named(tmp_path, tiny, line, problem):
    path = tmp_path / "results.jsonl"
    with opened_results(path, tiny) as file:
        file.add(row("a", "failed", error="no"))
    content = path.read_text() + line + "\n"
    path.write_text(content)
    with pytest.raises(ResultsError, match=f"Line 4 .*{problem}"):
        read(path)
    assert path.read_text() == content


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_two_runs_do_not_write_to_one_file(tmp_path, tiny):
    path = tmp_path / "results.jsonl"
    with (
        opened_results(path, tiny),
        pytest.raises(ResultsError, match="Another run is writing"),
        opened_results(path, tiny),
    ):
        pass


def test_a_later_row_replaces_an_earlier_one_but_failure_does_not_replace_success(tmp_path, tiny):
    path = tmp_path / "results.jsonl"
    with opened_results(path, tiny) as file:
        file.add(row("a", "failed", error="no"))
        file.add(row("b", accuracy=1.0))
        file.add(row("a", accuracy=2.0))
        file.add(row("b", "failed", error="no"))
        file.add(row("c", "failed", error="no"))
    results = read(path)
    assert {key: r["accuracy"] for key, r in results.done.items()} == {"b": 1.0, "a": 2.0}
    assert list(results.failed) == ["c"]


FULL_DISK = """
import resource, sys
from pathlib import Path
from margintree.experiments.protocol import QUICK
from margintree.experiments.results import ResultsError, opened_results

resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
with opened_results(Path(sys.argv[1]), QUICK) as file:
    for k in range(100):
        try:
            file.add({"kind": "split", "key": str(k), "status": "failed", "error": "x" * 90})
        except ResultsError as error:
            print(k, error)
            break
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_write_that_the_system_cuts_short_is_taken_back(tmp_path):
    path = tmp_path / "results.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=True)
    number, message = done.stdout.split(" ", 1)
    assert 3 < int(number) < 30
    assert "Could not write to" in message
    assert "run the same command again" in message
    assert path.read_bytes().endswith(b"\n")
    assert list(read(path).failed) == [str(k) for k in range(int(number))]
