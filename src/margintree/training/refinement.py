"""What a grown tree needs beyond its machines: calibrated sigmoids and, where asked for, scorers of its leaves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.prediction.kernel_tree import KernelTree
from margintree.prediction.linear_tree import LinearTree, Sigmoids
from margintree.prediction.ranker import ASK_ALL, LeafScorers, path_candidates
from margintree.solvers.classifier import NodeClassifier
from margintree.solvers.kernel_function import KernelFunction
from margintree.solvers.solution import Array
from margintree.solvers.training_set import LinearTrainingSet
from margintree.training.calibration import fit_sigmoids, own_paths, path_scores
from margintree.training.held_out import N_JURIES, deal_rows, machines_without
from margintree.training.leaf_scorers import LeafTrainer, pairs_of
from margintree.training.machines import Trainer
from margintree.training.scorer_trials import Hearing, choose

Index = npt.NDArray[np.int64]
FOLD_TOL = 1e-2
# Juries are heard until so many rows have been; with fewer, a difference of one in a hundred drowns in chance.
JURORS = 1000
Grown = Sequence[tuple[ClassTree, Sequence[NodeClassifier]]]


@dataclass(frozen=True)
class Refinement:
    """How to refine: folds of the rows, beam, length of the shortlists (0: no scorers), pruning of scorers."""

    n_folds: int
    width: int
    gap: float
    shortlist: int
    prune: float

    def asks_all(self, n_classes: int) -> bool:
        """Return whether all classes are on every list, however narrow the beam, and may be asked without a walk."""
        return n_classes <= min(self.shortlist, ASK_ALL)


@dataclass(frozen=True, eq=False)
class RefiningRows:
    """The training rows, sorted by class, and, but for the linear kernel, the kernel function.

    ``weight`` is what rows count by themselves, ``importance`` that times the weight of their class.
    """

    X: Any
    weight: Array
    importance: Array
    function: KernelFunction | None

    def model(self, grown: Grown) -> LinearTree | KernelTree:
        """Lay machines that were trained on these rows out for prediction."""
        if self.function is None:
            return LinearTree.of_trees(grown, self.X.shape[1])
        return KernelTree.of_trees(grown, self.function, self.X, np.arange(self.X.shape[0]))


def refine(
    trainer: Trainer, rows: RefiningRows, trees: Sequence[ClassTree], how: Refinement, n_threads: int
) -> tuple[Sigmoids, LeafScorers | None, float]:
    """Return the sigmoids of all nodes of all trees, the scorers, and a gap of the beam that serves them."""
    pairwise = rows.function is not None and rows.function.kernel == "precomputed"
    dealt = deal_rows(rows.X, trainer.training_set.class_start, how.n_folds, pairwise=pairwise)

    def held_out(left_out: npt.NDArray[np.bool_]) -> tuple[Sigmoids, LeafTrainer | None]:
        return _held_out(trainer, rows, trees, how, dealt.fold, left_out, n_threads)

    nobody = np.zeros(len(dealt.fold), dtype=np.bool_)
    if how.shortlist == 0:
        return held_out(nobody)[0], None, how.gap
    hearings = []
    n_juries = min(N_JURIES, math.ceil(JURORS * N_JURIES / dealt.n_different))
    weight_of_copies = np.bincount(dealt.copy, rows.importance).astype(np.float64)[dealt.copy]
    for number in range(n_juries):
        jury = dealt.jury == number
        sigmoids, leaf_trainer = held_out(jury)
        assert leaf_trainer is not None
        hearings.append(Hearing(leaf_trainer, jury, weight_of_copies))
    trial = choose(hearings, asks_all=how.asks_all(trees[0].n_classes))
    if n_juries > 1:
        # Where rows are few, machines that have seen the juries, too, are worth their time.
        sigmoids, leaf_trainer = held_out(nobody)
    assert leaf_trainer is not None
    return sigmoids, trial.scorers(leaf_trainer), trial.scores.best_gap()


def _held_out(
    trainer: Trainer,
    rows: RefiningRows,
    trees: Sequence[ClassTree],
    how: Refinement,
    fold: Index,
    left_out: npt.NDArray[np.bool_],
    n_threads: int,
) -> tuple[Sigmoids, LeafTrainer | None]:
    """Ask machines without each fold about its rows, none of them having seen the rows left out of all.

    Returns sigmoids fitted to what they say and, where shortlists are asked for, a trainer of scorers.
    """
    class_start = trainer.training_set.class_start
    class_of_row = np.repeat(np.arange(len(class_start) - 1), np.diff(class_start))
    is_new_class = _is_new_class(fold, left_out, class_of_row, how.n_folds)
    # Curves and shortlists do not need more than this of machines that are used for nothing else.
    trainer_of_folds = replace(trainer, tol=max(trainer.tol, FOLD_TOL))
    models = [
        rows.model(
            [
                (tree, machines_without(trainer_of_folds, tree, (fold == q) | left_out, how.prune, n_threads))
                for tree in trees
            ]
        )
        for q in range(how.n_folds)
    ]
    paths, sigmoids = [], []
    for t, tree in enumerate(trees):
        paths.append(own_paths(trees, t, models, rows.X, fold, class_of_row))
        sigmoids.append(fit_sigmoids(tree, paths[t], rows.importance, is_new_class))
    together = Sigmoids(np.concatenate([s.slope for s in sigmoids]), np.concatenate([s.shift for s in sigmoids]))
    if how.shortlist == 0:
        return together, None
    training_set = trainer.training_set
    assert isinstance(training_set, LinearTrainingSet)
    own = np.mean([path_scores(p, s) for p, s in zip(paths, sigmoids, strict=True)], axis=0)
    # What is not needed any more would be half of the memory of a fit with many classes.
    del paths
    listed, scores = _shortlists(rows, models, together, fold, how)
    del models
    pairs = pairs_of(training_set, rows.weight, listed, scores, own)
    return together, LeafTrainer(
        *(training_set, pairs, rows.weight, rows.importance, how.prune),
        *(trainer.tol, trainer.max_iter, trainer.seed, n_threads),
    )


def _is_new_class(
    fold: Index, left_out: npt.NDArray[np.bool_], class_of_row: Index, n_folds: int
) -> npt.NDArray[np.bool_]:
    """Return whether the machines that are asked about a row have seen no row of its class."""
    counts = np.zeros((class_of_row[-1] + 1, n_folds), dtype=np.int64)
    np.add.at(counts, (class_of_row[~left_out], fold[~left_out]), 1)
    return np.asarray(counts[class_of_row, fold] == counts.sum(axis=1)[class_of_row])


def _shortlists(
    rows: RefiningRows, models: Sequence[LinearTree | KernelTree], sigmoids: Sigmoids, fold: Index, how: Refinement
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    n_classes = models[0].trees[0].n_classes
    size, width = min(how.shortlist, n_classes), 0 if how.asks_all(n_classes) else how.width
    listed, scores = np.empty((len(fold), size), dtype=np.int32), np.empty((len(fold), size), dtype=np.float32)
    for q, model in enumerate(models):
        held_out, asked = np.flatnonzero(fold == q), replace(model, sigmoids=sigmoids)
        listed[held_out], scores[held_out] = path_candidates(asked, rows.X[held_out], width, how.gap, size)
    return listed, scores
