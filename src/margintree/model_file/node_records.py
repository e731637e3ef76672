"""Records of the nodes, without the time that they took, and of the candidates of a cross-validation."""

import itertools
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from margintree.model_file.sections import Input, Output
from margintree.prediction.decider import KINDS
from margintree.structures.grow import NodeRecord
from margintree.training.decision import CandidateRecord
from margintree.training.defaults import LOSSES

DTYPE_OF = {float: np.float64, int: np.int64, bool: np.bool_}
# Times differ between runs, but the same model must give the same file.
NOT_STORED = "seconds"
RECORD_COLUMNS = {
    field.name: DTYPE_OF[field.type]
    for field in fields(NodeRecord)
    if field.type in DTYPE_OF and field.name != NOT_STORED
}
SIDES = ("classes_left", "classes_right")
CANDIDATE_WORDS = {"decide": KINDS, "loss": LOSSES}
CANDIDATE_COLUMNS = {field.name: DTYPE_OF[field.type] for field in fields(CandidateRecord) if field.type in DTYPE_OF}


def put_records(out: Output, records: list[NodeRecord]) -> None:
    """Store records column by column."""
    for name, dtype in RECORD_COLUMNS.items():
        out.array(name, np.array([getattr(record, name) for record in records], dtype=dtype))
    for name in SIDES:
        sides = [getattr(record, name) for record in records]
        out.array(f"n_{name}", np.array([len(side) for side in sides], dtype=np.int64))
        out.array(name, np.array(list(itertools.chain.from_iterable(sides)), dtype=np.int64))


def take_records(source: Input, n_records: int, n_classes: int) -> list[NodeRecord]:
    """Return the records; their times are not stored."""
    columns: dict[str, list[Any]] = {NOT_STORED: [float("nan")] * n_records}
    for name, dtype in RECORD_COLUMNS.items():
        columns[name] = source.array(name, dtype, n_records).tolist()
    for name in SIDES:
        members = source.indices(name, n_classes, None).tolist()
        start = source.starts(f"n_{name}", n_records, len(members)).tolist()
        columns[name] = [tuple(members[i:j]) for i, j in itertools.pairwise(start)]
    return [NodeRecord(**values) for values in _by_record(columns)]


def put_candidates(out: Output, records: list[CandidateRecord]) -> None:
    """Store candidates column by column."""
    for name, known in CANDIDATE_WORDS.items():
        out.array(name, np.array([known.index(getattr(record, name)) for record in records], dtype=np.int64))
    for name, dtype in CANDIDATE_COLUMNS.items():
        out.array(name, np.array([getattr(record, name) for record in records], dtype=dtype))


def take_candidates(source: Input) -> list[CandidateRecord]:
    """Return the candidates; fields that older files lack have their defaults."""
    columns: dict[str, list[Any]] = {}
    n_records = None
    for name, known in CANDIDATE_WORDS.items():
        if name == "decide" or source.has(name):
            columns[name] = [known[number] for number in source.indices(name, len(known), n_records).tolist()]
            n_records = len(columns[name])
    if source.has("path_weight"):
        # Where paths had one of two weights, instead of one that is fitted.
        columns["weighs_path"] = (source.array("path_weight", np.float64, n_records) > 0.0).tolist()
    for name, dtype in CANDIDATE_COLUMNS.items():
        if name not in columns:
            columns[name] = source.array(name, dtype, n_records).tolist()
    return [CandidateRecord(**values) for values in _by_record(columns)]


def _by_record(columns: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
