"""Hostile files of rows at the command line: each is classified or learned from, or refused with one message.

Every file goes through ``margintree predict`` or ``fit`` as a user would give it, svmlight or CSV, plain, packed, or
packed and damaged, with long labels, wide lines and columns that stand there many times. A traceback, a message that is
none, an output in spite of an error or a file left behind is a failure, and so is memory out of proportion.
"""

import argparse
import bz2
import gzip
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing import PREDICTS, REFUSED, Campaign, forget_peak, memory_bytes, quick_directory, run
from row_mutations import mutant
from sklearn.datasets import dump_svmlight_file, load_iris
from typer.testing import CliRunner

from margintree import MarginTreeClassifier, save_model
from margintree.cli.app import app

PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}
# Fitting takes far longer than reading.
FIT_SHARE = 0.05
# Arrays of the width of the rows, up to 2^24 columns, are all that a small file can ask for; a fit has several of them.
MEMORY_PER_BYTE, MEMORY_AT_LEAST = 100, {"predict": 2**28, "fit": 2**30}


class RowTrial:
    """Mutations of the files of rows in a directory."""

    kinds = tuple(
        f"{command} {name}{end}"
        for command in ("predict", "fit")
        for name in ("rows.svm", "rows.csv")
        for end in PACKERS
    )

    def __init__(self, directory: Path) -> None:
        np.seterr(all="ignore")
        self.model = directory / "model"
        self.sound = {name: (directory / name).read_bytes() for name in ("rows.svm", "rows.csv")}
        self.scratch = tempfile.TemporaryDirectory(dir=quick_directory())
        # No file is measured while loops are compiled.
        for number, kind in enumerate(self.kinds):
            self.outcome_of(number, self.sound[kind.split()[1].removesuffix(".gz").removesuffix(".bz2")], seed=1)

    def file_of(self, seed: int) -> tuple[int, bytes]:
        """Return what is done with the file of a seed, and the file."""
        draw = random.Random(seed)
        fits = draw.random() < FIT_SHARE
        name, packer = draw.choice(list(self.sound)), draw.choice(list(PACKERS))
        content = mutant(self.sound[name], draw)
        raw = PACKERS[packer](content)
        if packer and draw.random() < 0.5:
            raw = mutant(raw, draw)
        return self.kinds.index(f"{'fit' if fits else 'predict'} {name}{packer}"), raw

    def outcome_of(self, kind: int, raw: bytes, seed: int) -> int:
        """Return what becomes of a file."""
        command, name = self.kinds[kind].split()
        directory = Path(self.scratch.name)
        path, output = directory / name, directory / "output"
        path.write_bytes(raw)
        given = ["--label", "species"] if ".csv" in name and seed % 2 else []
        files = [path, "--walk", "greedy", "-o", output] if command == "fit" else [self.model, path]
        forget_peak()
        before = memory_bytes("VmRSS")
        done = CliRunner().invoke(app, [command, *map(str, files), *given])
        taken = memory_bytes("VmHWM") - before
        self.check(done, has_output=output.exists() if command == "fit" else done.stdout != "")
        if taken > MEMORY_AT_LEAST[command] + MEMORY_PER_BYTE * len(raw):
            raise AssertionError(f"{len(raw)} bytes took {taken} bytes of memory")
        path.unlink()
        output.unlink(missing_ok=True)
        if list(directory.iterdir()):
            raise AssertionError(f"left behind: {[p.name for p in directory.iterdir()]}")
        return PREDICTS if done.exit_code == 0 else REFUSED

    def check(self, done: Any, *, has_output: bool) -> None:
        """Require an exit code that is meant, a message with it, and output only without an error."""
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        if done.exit_code not in (0, 1):
            raise AssertionError(f"exit code {done.exit_code}: {done.stderr:.200}")
        if has_output != (done.exit_code == 0):
            raise AssertionError(f"exit code {done.exit_code}, and output: {has_output}")
        if done.exit_code == 1 and ("Error: " not in done.stderr or "Traceback" in done.stderr):
            raise AssertionError(f"no message but {done.stderr:.200}")


def try_rows(n_files: int, first_seed: int, n_workers: int = 1) -> Campaign:
    """Try mutations of fifty rows of iris, with a model of the others."""
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        save_model(MarginTreeClassifier(random_state=0).fit(X, y), directory / "model")
        dump_svmlight_file(X[::3], y[::3], str(directory / "rows.svm"), zero_based=True)
        lines = [f"{name},{','.join(map(repr, row))}" for name, row in zip(names[::3], X[::3].tolist(), strict=True)]
        (directory / "rows.csv").write_text("\n".join(["species,a,b,c,d", *lines, ""]))
        return run(RowTrial, directory, n_files, first_seed, n_workers)


def main() -> None:
    import report

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    if sys.platform != "linux":
        parser.error("memory is read from /proc; run this on Linux")
    campaign = try_rows(given.files, given.first_seed, given.workers)
    report.write_campaign("Hostile files of rows", "hostile_rows", "command and file", campaign)


if __name__ == "__main__":
    main()
