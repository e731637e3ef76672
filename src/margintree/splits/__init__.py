"""Splits: how one node divides its classes, one idea per file."""

from margintree.splits.alternating import AlternatingSplit
from margintree.splits.best_first import BestFirstSplit
from margintree.splits.bounds import conclude
from margintree.splits.centroid import CentroidSplit
from margintree.splits.exhaustive import ExhaustiveSplit
from margintree.splits.node import NodeProblem, Split, SplitResult
from margintree.splits.random import RandomSplit
from margintree.splits.relaxation import RelaxationSplit

__all__ = [
    "SPLITS",
    "AlternatingSplit",
    "BestFirstSplit",
    "CentroidSplit",
    "ExhaustiveSplit",
    "NodeProblem",
    "RandomSplit",
    "RelaxationSplit",
    "Split",
    "SplitResult",
    "conclude",
]

SPLITS: dict[str, Split] = {
    "best_first": BestFirstSplit(),
    "alternating": AlternatingSplit(),
    "relaxation": RelaxationSplit(),
    "paper": RelaxationSplit(oracle="linf", mkl="simplemkl", rounding="kruskal"),
    "exhaustive": ExhaustiveSplit(),
    "random": RandomSplit(),
    "centroid": CentroidSplit(),
}
