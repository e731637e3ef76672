"""margintree and its peers on the same rows: training, prediction, accuracy, size and memory.

    python benchmarks/peers.py [SET ...] [--again NAME]

Each peer runs alone in its own process, on one core, with one thread; one that is not part of our environment gets
an environment of its own (see ``peer_environments``). Finished rows are kept in results/peers.json and not run again,
so that an interrupted run goes on where it stopped; ``--again NAME`` runs the rows anew whose name begins so. Two runs
at once would overwrite each other's results.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from peer_process import Peer, formatted, keep, measured, read_kept
from peer_rows import SETS, write_rows
from report import RESULTS, heading, table, write

KEPT = RESULTS / "peers.json"
# Seconds for one row of the table.
TIME_LIMIT = 600

# Parameters of MarginTreeClassifier next to random_state=0; the first row is what someone gets who sets nothing.
MARGINTREE: dict[str, dict[str, Any]] = {
    "margintree": {},
    "margintree, 3 trees": {"n_trees": 3},
    "margintree, greedy walk": {"walk": "greedy"},
    "margintree, random splits": {"split": "random"},
}


OMIKUJI = ("omikuji", "numpy", "scipy")
NAPKINXC = ("napkinxc", "numpy", "scipy")
VOWPAL_WABBIT = ("vowpalwabbit", "numpy", "scipy")
# Vowpal Wabbit's defaults make no useful model of so many classes. These were the best of eleven settings of ect and of
# seven of recall_tree, trained on three quarters of the training rows of wordnet_hypernyms and tested on the rest.
VOWPAL_WABBIT_ECT = "{n_classes} -b 26 --passes 5 --holdout_off --loss_function hinge"
VOWPAL_WABBIT_RECALL_TREE = "{n_classes} -b 26 --passes 2 --holdout_off --max_candidates 100"
# libpecos asks for torch and transformers, which XR-Linear does not use, and for numpy 1.
PECOS = ("numpy<2", "scipy<1.14", "scikit-learn")
PEERS: dict[str, Peer] = {
    **{name: Peer("margintree", parameters) for name, parameters in MARGINTREE.items()},
    # As omikuji's own comparison with Bonsai has it.
    "omikuji Bonsai, 3 trees": Peer(
        "omikuji", {"n_trees": 3, "cluster_balanced": False, "cluster_k": 100, "max_depth": 3}, OMIKUJI
    ),
    "omikuji k-means with k=16, 3 trees": Peer(
        "omikuji", {"n_trees": 3, "cluster_balanced": False, "cluster_k": 16}, OMIKUJI
    ),
    "omikuji Parabel, 3 trees": Peer("omikuji", {"n_trees": 3}, OMIKUJI),
    "omikuji Parabel, 1 tree": Peer("omikuji", {"n_trees": 1}, OMIKUJI),
    "PECOS XR-Linear": Peer("pecos", {}, PECOS, ("libpecos",)),
    "napkinXC HSM": Peer("napkinxc", {"model": "HSM"}, NAPKINXC),
    "napkinXC PLT": Peer("napkinxc", {"model": "PLT"}, NAPKINXC),
    "LinearSVC (1vsR)": Peer("sklearn", {"model": "LinearSVC", "random_state": 0}),
    "Vowpal Wabbit ect": Peer("vowpalwabbit", {"arguments": f"--ect {VOWPAL_WABBIT_ECT}"}, VOWPAL_WABBIT),
    "Vowpal Wabbit recall_tree": Peer(
        "vowpalwabbit", {"arguments": f"--recall_tree {VOWPAL_WABBIT_RECALL_TREE}"}, VOWPAL_WABBIT
    ),
    "cosine to the class mean (floor)": Peer("sklearn", {"model": "cosine"}),
    # Last, because it takes longer than all others together.
    "liblinear Crammer-Singer": Peer(
        "sklearn", {"model": "LinearSVC", "random_state": 0, "multi_class": "crammer_singer"}
    ),
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


def run_set(name: str, kept: dict[str, Any], again: str | None) -> None:
    rows = kept.setdefault(name, {}).setdefault("rows", {})
    # What failed is tried again, but for what ran out of time.
    done = {peer for peer, row in rows.items() if "failed" not in row or row.get("over_limit")}
    todo = [peer for peer in PEERS if peer not in done or (again is not None and peer.startswith(again))]
    if not todo:
        return
    with TemporaryDirectory() as directory:
        kept[name]["what"] = write_rows(name, Path(directory))
        for peer in todo:
            rows[peer] = measured(PEERS[peer], Path(directory), TIME_LIMIT)
            keep(kept, KEPT)
            print(f"{name} | {peer} | {' | '.join(formatted(rows[peer], COLUMNS))}", flush=True)


def report(kept: dict[str, Any]) -> list[str]:
    lines = heading("margintree and its peers", arguments="")
    lines += [
        "One thread and one core each, one after the other. One row: median over 1000 calls of the peer's Python API "
        "with a row that is already in the form it takes. Batch: best of three. Training time contains reading the "
        "text file where the peer trains from one (omikuji, Vowpal Wabbit) and writing the model where it trains into "
        "a file (napkinXC, Vowpal Wabbit). Model: size on disk. Training memory: peak above that just before training. "
        "Parameters are the peers' defaults (C=1 for LinearSVC) but for those listed at the end; only Vowpal Wabbit's "
        "were chosen, on training rows of wordnet_hypernyms. The training rows are shuffled.",
        "",
    ]
    for name in (name for name in SETS if name in kept):
        rows = kept[name]["rows"]
        lines += [f"## {name}", "", kept[name]["what"] + ".", ""]
        lines += table(["peer", *COLUMNS], [[peer, *formatted(rows[peer], COLUMNS)] for peer in PEERS if peer in rows])
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
    kept = read_kept(KEPT)
    for name in given.sets or SETS:
        run_set(name, kept, given.again)
    write("peers", report(kept))


if __name__ == "__main__":
    main()
