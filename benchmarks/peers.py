"""margintree and its peers on the same rows: training, prediction, accuracy, size and memory.

    python benchmarks/peers.py [SET ...] [--again NAME]

Each peer runs alone in its own process, on one core, with one thread; one that is not part of our environment gets
an environment of its own (see ``peer_environments``). Finished rows are kept in results/peers.json and not run again,
so that an interrupted run goes on where it stopped; ``--again NAME`` runs the rows anew whose name begins so.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from peer_environments import CannotInstall, interpreter
from peer_rows import SETS, write_rows
from report import RESULTS, heading, table, write

RUNNERS = Path(__file__).parent / "peer_runners"
KEPT = RESULTS / "peers.json"
TIME_LIMIT = 3600
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")

# Parameters of MarginTreeClassifier next to random_state=0; the first row is what someone gets who sets nothing.
MARGINTREE: dict[str, dict[str, Any]] = {
    "margintree": {},
    "margintree, random splits": {"split": "random"},
}


@dataclass(frozen=True)
class Peer:
    """A runner script with its parameters, and what to install for it (nothing: it runs in our environment)."""

    runner: str
    parameters: dict[str, Any] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()

    def python(self) -> str:
        if not self.requirements:
            return sys.executable
        return interpreter(self.runner, self.requirements, self.alone)


OMIKUJI = ("omikuji", "numpy", "scipy")
NAPKINXC = ("napkinxc", "numpy", "scipy")
VOWPAL_WABBIT = ("vowpalwabbit", "numpy", "scipy")
# libpecos asks for torch and transformers, which XR-Linear does not use, and for numpy 1.
PECOS = ("numpy<2", "scipy<1.14", "scikit-learn")
PEERS: dict[str, Peer] = {
    **{name: Peer("margintree", parameters) for name, parameters in MARGINTREE.items()},
    "omikuji Bonsai, 3 trees": Peer(
        "omikuji", {"n_trees": 3, "cluster_balanced": False, "cluster_k": 100, "max_depth": 3}, OMIKUJI
    ),
    "omikuji Parabel, 3 trees": Peer("omikuji", {"n_trees": 3}, OMIKUJI),
    "omikuji Parabel, 1 tree": Peer("omikuji", {"n_trees": 1}, OMIKUJI),
    "PECOS XR-Linear": Peer("pecos", {}, PECOS, ("libpecos",)),
    "napkinXC HSM": Peer("napkinxc", {"model": "HSM"}, NAPKINXC),
    "napkinXC PLT": Peer("napkinxc", {"model": "PLT"}, NAPKINXC),
    "liblinear Crammer-Singer": Peer(
        "sklearn", {"model": "LinearSVC", "random_state": 0, "multi_class": "crammer_singer"}
    ),
    "LinearSVC (1vsR)": Peer("sklearn", {"model": "LinearSVC", "random_state": 0}),
    "Vowpal Wabbit ect": Peer("vowpalwabbit", {"arguments": "--ect {n_classes} -b 24 --passes 10"}, VOWPAL_WABBIT),
    "Vowpal Wabbit recall_tree": Peer(
        "vowpalwabbit", {"arguments": "--recall_tree {n_classes} -b 24 --passes 10"}, VOWPAL_WABBIT
    ),
    "cosine to the class mean (floor)": Peer("sklearn", {"model": "cosine"}),
}
COLUMNS = {
    "train s": ("train_s", ".2f"),
    "one row us": ("one_row_us", ".1f"),
    "batch us/row": ("batch_us", ".1f"),
    "accuracy": ("accuracy", ".3f"),
    "mean per class": ("mean_per_class", ".3f"),
    "model MB": ("model_mb", ".3g"),
    "training memory MB": ("memory_mb", ".0f"),
    "evaluations": ("evaluations", ".1f"),
}


def measured(peer: Peer, directory: Path) -> dict[str, Any]:
    """Run one peer; a failure becomes a row that says why."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    result = directory / "result.json"
    result.unlink(missing_ok=True)
    try:
        command = [peer.python(), str(RUNNERS / f"run_{peer.runner}.py"), str(directory), json.dumps(peer.parameters)]
        done = subprocess.run(
            [*command, str(result)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT,
            env={**os.environ, **ONE_THREAD},
            preexec_fn=on_one_core if hasattr(os, "sched_setaffinity") else None,
        )
    except CannotInstall as reason:
        return {"failed": f"cannot be installed: {reason}", "date": now}
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {TIME_LIMIT} s", "date": now}
    if done.returncode or not result.exists():
        lines = done.stderr.strip().splitlines() or ["no message"]
        return {"failed": f"exit code {done.returncode}: {lines[-1]}", "date": now}
    return {**json.loads(result.read_text()), "date": now}


def on_one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def keep(kept: dict[str, Any]) -> None:
    new = KEPT.with_suffix(".new")
    new.write_text(json.dumps(kept, indent=1) + "\n")
    os.replace(new, KEPT)


def run_set(name: str, kept: dict[str, Any], again: str | None) -> None:
    rows = kept.setdefault(name, {}).setdefault("rows", {})
    todo = [
        peer
        for peer in PEERS
        if peer not in rows or "failed" in rows[peer] or (again is not None and peer.startswith(again))
    ]
    if not todo:
        return
    with TemporaryDirectory() as directory:
        kept[name]["what"] = write_rows(name, Path(directory))
        for peer in todo:
            rows[peer] = measured(PEERS[peer], Path(directory))
            keep(kept)
            print(f"{name} | {peer} | {' | '.join(map(str, cells(rows[peer])))}", flush=True)


def cells(row: dict[str, Any]) -> list[str]:
    if "failed" in row:
        return [row["failed"].replace("|", "/"), *[""] * (len(COLUMNS) - 1)]
    return ["—" if row[key] is None else format(row[key], form) for key, form in COLUMNS.values()]


def report(kept: dict[str, Any]) -> list[str]:
    lines = heading("margintree and its peers", arguments="")
    lines += [
        "One thread and one core each, one after the other. One row: median over 1000 calls of the peer's Python API "
        "with a row that is already in the form it takes. Batch: best of three. Training time contains reading the "
        "text file where the peer trains from one (omikuji, Vowpal Wabbit) and writing the model where it trains into "
        "a file (napkinXC, Vowpal Wabbit). Model: size on disk. Training memory: peak above that just before training. "
        "Parameters are the peers' defaults but for those listed at the end; nobody is tuned.",
        "",
    ]
    for name in (name for name in SETS if name in kept):
        rows = kept[name]["rows"]
        lines += [f"## {name}", "", kept[name]["what"] + ".", ""]
        lines += table(["peer", *COLUMNS], [[peer, *cells(rows[peer])] for peer in PEERS if peer in rows])
        differ = [
            f"{peer} ({rows[peer]['one_row_differs']})" for peer in PEERS if rows.get(peer, {}).get("one_row_differs")
        ]
        if differ:
            lines += [f"Of the 1000 single rows, some got another class than in the batch: {', '.join(differ)}.", ""]
    lines += ["## What was run", ""]
    return lines + table(["peer", "version", "parameters", "measured (UTC)"], what_was_run(kept))


def what_was_run(kept: dict[str, Any]) -> list[list[str]]:
    found = []
    for name, peer in PEERS.items():
        rows = [kept[s]["rows"][name] for s in SETS if name in kept.get(s, {}).get("rows", {})]
        if rows:
            versions = ", ".join(sorted({row["version"] for row in rows if "version" in row})) or "—"
            dates = sorted(row["date"] for row in rows)
            period = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
            found.append([name, versions, f"`{json.dumps(peer.parameters)}`", period])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all of them without one")
    parser.add_argument("--again", metavar="NAME", help="run the rows anew whose name begins with NAME")
    given = parser.parse_args()
    if unknown := set(given.sets) - set(SETS):
        parser.error(f"no such set: {', '.join(sorted(unknown))}. There are {', '.join(SETS)}.")
    if given.again is not None and not any(peer.startswith(given.again) for peer in PEERS):
        parser.error(f"no peer's name begins with {given.again!r}. There are: {'; '.join(PEERS)}.")
    RESULTS.mkdir(exist_ok=True)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in given.sets or SETS:
        run_set(name, kept, given.again)
    write("peers", report(kept))


if __name__ == "__main__":
    main()
