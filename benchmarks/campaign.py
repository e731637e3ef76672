"""All results that README and docs quote in tables, from one commit, those tables, and the figure of README.

    python benchmarks/campaign.py            # everything, one after the other: a day
    python benchmarks/campaign.py draws      # one of reproduction, accuracy, methods, draws, peers
    python benchmarks/campaign.py --docs     # only the tables and the figure, from the results that are there

A table that this script writes stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->``;
``tests/test_quoted_figures.py`` fails where one of them is not what the results files say.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import peers_figure
from report import RESULTS

from margintree.experiments.report import Report
from margintree.experiments.results import code_hash, read
from margintree.experiments.summary import KERNEL_TITLES, set_title
from margintree.storage import replacing

ROOT = Path(__file__).parents[1]
REPRODUCTION = RESULTS / "reproduction"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
COMMANDS = {
    "reproduction": ("-m", "margintree", "reproduce", "--full", "--output", str(REPRODUCTION)),
    "accuracy": (str(ROOT / "benchmarks" / "accuracy.py"), "--again"),
    "methods": (str(ROOT / "benchmarks" / "methods.py"),),
    "draws": (str(ROOT / "benchmarks" / "draws.py"),),
    # What the peers themselves measured earlier stays; their versions and dates are in the file.
    "peers": (str(ROOT / "benchmarks" / "peers.py"), "--again", "margintree"),
}
# Peers in the table of README.
COMPARED = {
    "margintree": "margintree",
    "margintree, greedy walk": "margintree, greedy walk",
    "omikuji Bonsai, 3 trees": "omikuji Bonsai, 3 trees",
    "omikuji Parabel, 1 tree": "omikuji Parabel, 1 tree",
    "PECOS XR-Linear": "PECOS XR-Linear",
    "napkinXC HSM": "napkinXC HSM",
    "LinearSVC (1vsR)": "scikit-learn LinearSVC",
}
# Sets of the table of draws.
DRAWN = ("svmguide4", "vowel", "segment", "pendigits", "led7digit", "vehicle", "digits")


def lines_of(header: Sequence[str], n_labels: int, rows: Sequence[Sequence[str]]) -> str:
    align = ["---" if k < n_labels else "--:" for k in range(len(header))]
    return "\n".join([f"| {' | '.join(header)} |", f"|{'|'.join(align)}|", *(f"| {' | '.join(r)} |" for r in rows)])


def peers() -> str:
    """Return margintree and its peers on the set with the most classes."""
    results = json.loads((RESULTS / "peers.json").read_text())[peers_figure.SET]["rows"]
    columns = {"train_s": ".1f", "one_row_us": ".1f", "accuracy": ".3f", "mean_per_class": ".3f", "model_mb": ".3g"}
    rows = [
        [title, *(f"{results[name][what]:{form}}" for what, form in columns.items())]
        for name, title in COMPARED.items()
    ]
    return lines_of(["", "fit, s", "one row, µs", "accuracy", "mean per class", "model, MB"], 1, rows)


def draws() -> str:
    """Return the defaults against their peers at the same C."""
    results = json.loads((RESULTS / "draws.json").read_text())
    rows = []
    for name in DRAWN:
        for kernel, peer in (("linear", "LinearSVC"), ("rbf", "SVC")):
            models = results[f"{name}, {kernel}"]["models"]

            def mean(model: str, what: str = "mean", models: Any = models) -> float:
                return sum(line[what] for line in models[model]) / len(models[model])

            gains = [100 * (a["mean"] - b["mean"]) for a, b in zip(models["margintree"], models[peer], strict=True)]
            centre = sum(gains) / len(gains)
            error = (sum((g - centre) ** 2 for g in gains) / (len(gains) - 1) / len(gains)) ** 0.5
            figures = [
                f"{100 * mean('margintree'):.2f}",
                f"{mean('margintree', 'evaluations'):.1f}",
                *(f"{100 * mean(model):.2f}" for model in ("greedy", "1vs1")),
                f"{mean('1vs1', 'evaluations'):.0f}",
                f"{100 * mean(peer):.2f}",
                f"{centre:+.2f} ± {error:.2f}",
            ]
            rows.append([name, KERNEL_TITLES[kernel], *figures])
    header = ["set", "kernel", "margintree", "DF", "greedy walk", "1vs1", "DF", "LinearSVC / SVC", "difference"]
    return lines_of(header, 2, rows)


def for_users() -> str:
    """Return what a user gets on the sets of the paper, with the paper's algorithm beside it."""
    summary, rows = the_report().summary, []
    for setting in summary.settings:
        found = {m: f"{cell.mean:.2f} ± {cell.deviation:.2f}" for m, cell in summary.row(setting).items()}
        asked = f"{summary.cells['MSM (ours)', setting].costs['evaluations']:.1f}"
        names = [set_title(setting[0]), KERNEL_TITLES[setting[1]]]
        rows.append([*names, found["MSM (ours)"], asked, *(found[m] for m in ("MSM (paper)", "1vs1", "1vsR"))])
    header = ["set", "kernel", "our defaults", "evaluations", "the paper's algorithm", "1vs1", "1vsR"]
    return lines_of(header, 2, rows)


def every_method() -> str:
    """Return the first table of methods.md, with the sentence before it."""
    return "\n\n".join((RESULTS / "methods.md").read_text().split("\n\n")[2:4])


@cache
def the_report() -> Report:
    return Report(read(REPRODUCTION / "results.jsonl"))


def of_the_report(*names: str) -> str:
    """Return tables of the report by their names; "claims" stands for all claims, "answer" for its opening."""
    report = the_report()
    parts = {"answer": report.answer, "claims": "\n\n".join(claim.to_markdown() for claim in report.claims)}
    parts |= {table.name: table.to_markdown() for table in report.tables}
    return "\n\n".join(parts[name] for name in names if parts.get(name))


TABLES: dict[str, Callable[[], str]] = {
    "peers": peers,
    "draws": draws,
    "for_users": for_users,
    "every_method": every_method,
    "answer": lambda: of_the_report("answer"),
    "claims": lambda: of_the_report("claims"),
    "with_the_paper": lambda: of_the_report("accuracy_paper", "ranks_paper"),
    "with_bias": lambda: of_the_report("accuracy_users", "ranks_users"),
    "readings": lambda: of_the_report("readings"),
}


def with_tables(text: str) -> str:
    """Return a page with its tables made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)


def write_docs() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := with_tables(text)) != text:
            with replacing(page) as path:
                path.write_text(new, encoding="utf-8")
            print(f"written to {page}")
    peers_figure.draw(peers_figure.FIGURE)


def require_one_commit() -> None:
    """Leave if the code differs from what is committed: the results would name a commit that did not make them."""
    if shutil.which("git") is None:
        raise SystemExit("git is needed to tell which commit makes the results.")
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--", "src", "benchmarks/*.py"]
    changed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if changed:
        raise SystemExit(f"Commit these first, so that one commit makes all results:\n{changed}")


def forget_other_code(name: str) -> None:
    """Remove results that another state of the code began: they would be refused, or taken for those of this one."""
    results = REPRODUCTION / "results.jsonl"
    if name == "reproduction" and results.exists() and read(results).protocol.get("code") != code_hash():
        results.unlink()
    if name == "methods":
        (RESULTS / "methods.unfinished.jsonl").unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(COMMANDS)}; all of them without")
    parser.add_argument(
        "--docs", action="store_true", help="run nothing, only write tables and figure of README and docs"
    )
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(COMMANDS):
        parser.error(f"unknown part {min(unknown)!r}; choose from {', '.join(COMMANDS)}")
    if not asked.docs:
        require_one_commit()
        for name in asked.parts or COMMANDS:
            print(f"== {name}", flush=True)
            forget_other_code(name)
            subprocess.run([sys.executable, *COMMANDS[name]], check=True)
    write_docs()


if __name__ == "__main__":
    main()
