"""Cross-validation of the candidate deciders, and training of the one that is chosen.

Validation rows must be new to all machines that are evaluated on them. Machines that learn from lists of finalists need
more: if a validation row is in the training set of the machines that make the lists, the rows that resemble it are
listed with its class and become negatives of its machine, which then looks worse than it is. The structure of the tree
is learned from all rows, which makes paths look better than they are; where rows are few, a tree is grown without them.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from margintree.class_tree import ClassTree
from margintree.prediction.decider import Decider, pairs_by_class
from margintree.prediction.linear_tree import Sigmoids
from margintree.prediction.weight_table import WeightTable
from margintree.solvers.classifier import KernelClassifier, NodeClassifier
from margintree.solvers.row_keys import row_keys
from margintree.solvers.softmax_machines import RowLists, SoftmaxTrainer
from margintree.solvers.solution import Array
from margintree.solvers.training_set import KernelTrainingSet, LinearTrainingSet, TrainingSet
from margintree.training import defaults
from margintree.training.defaults import Candidate, Wanted
from margintree.training.folds import deal
from margintree.training.held_out import Grown, HeldOut, Mask, Rows, hold_out, leave_one_out
from margintree.training.machines import Trainer, all_pairs
from margintree.training.pair_machines import joined, pairs_that_meet, selected, train_pairs
from margintree.training.rest_machines import Lists, ListTrainer, train_against_all
from margintree.training.validation import Evaluation, Result, result_of, weighed_decider
from margintree.worker_threads import in_threads

Index = npt.NDArray[np.int64]
Regrow = Callable[[TrainingSet], ClassTree] | None


@dataclass(frozen=True)
class CandidateRecord(Candidate):
    """A candidate and its results on the validation rows.

    Attributes
    ----------
    accuracy : float
    behind, standard_error : float
        Difference between the best accuracy and this one, and its standard error.
    n_evaluations : float
        Mean number of decision functions per row.
    is_chosen : bool
    """

    accuracy: float = np.nan
    behind: float = 0.0
    standard_error: float = 0.0
    n_evaluations: float = np.nan
    is_chosen: bool = False


@dataclass(frozen=True, eq=False)
class Decision:
    """The sigmoids of the nodes, and the decider with the finalists it is for.

    ``machines`` of a kernel follow those of the nodes. ``open_gap`` is the relative duality gap of machines that did
    not converge, else 0.
    """

    sigmoids: Sigmoids
    decider: Decider
    machines: list[KernelClassifier]
    chosen: Candidate
    records: list[CandidateRecord]
    open_gap: float = 0.0


def decide(
    trainer: Trainer,
    grown: Grown,
    wanted: Wanted,
    n_threads: int,
    on_step: Callable[[str, float], None] = lambda description, done: None,
    regrow: Regrow = None,
) -> Decision:
    """Calibrate the trees, try the candidates, and train the decider that is chosen on all rows.

    ``grown`` has the trees, with their machines if these have leave-one-out values. ``on_step`` is called with a
    description of each step and the fraction of the work done. ``regrow`` grows the tree from other
    rows.
    """
    training_set, function = trainer.training_set, trainer.training_set.function
    tried, trees = defaults.candidates(wanted, training_set), [tree for tree, _ in grown]
    if isinstance(training_set, KernelTrainingSet) and training_set.leaves_one_out:
        return decide_by_leaving_one_out(trainer, grown, tried, wanted, n_threads, on_step)
    uses_lists = not defaults.learns_from_all(training_set) and any(one.decide == "rest" for one in tried)
    n_folds = defaults.number_of_folds(wanted, training_set.n_rows)
    keys = row_keys(training_set.X, pairwise=function is not None and function.kernel == "precomputed")
    if isinstance(training_set, LinearTrainingSet) and training_set.order is not None:
        keys = keys[training_set.order]
    folds = deal(keys, training_set.class_start, training_set.sample_weight, n_folds)
    rows = Rows.of(training_set, folds, n_folds, keys)
    trainer = replace(trainer, training_set=rows.training_set)
    of_folds = replace(trainer, tol=max(trainer.tol, defaults.FOLD_TOL))
    nobody = np.zeros(len(rows.fold), dtype=np.bool_)

    masks = validation_parts(rows) if uses_lists else []
    # Rows are held out of each part and, if there are several, of all rows; the final decider is the last step.
    steps = itertools.count(1)
    n_steps = n_folds * (len(masks) + (len(masks) != 1)) + len(tried) + 1

    def step_done(description: str) -> None:
        on_step(description, next(steps) / n_steps)

    def held_out(left_out: Mask) -> HeldOut:
        on_fold = partial(step_done, "cross-validation of the nodes")
        return hold_out(of_folds, rows, trees, left_out, wanted.prune, n_threads, on_fold)

    if uses_lists:
        rounds = [Round(of_folds, held_out(mask), mask, wanted, n_threads) for mask in masks]
        # With few rows there are several parts, and the nodes are cross-validated once more with none of them left out.
        everything = rounds[0].held_out if len(rounds) == 1 else held_out(nobody)
    else:
        everything = held_out(nobody)
        can_tell = everything.counted > 0.0
        masks = [can_tell & (rows.fold == fold) for fold in range(n_folds)] if is_choice(tried) else []
        masks = enough_of(masks, defaults.VALIDATION_ROWS)
        masks = [mask for mask in masks if mask.any()]
        is_small = folds.n_units <= defaults.VALIDATION_ROWS
        new = [
            hold_out(of_folds, rows, [regrow(rows.without(mask))], mask, wanted.prune, n_threads)
            if regrow is not None and is_small
            else everything
            for mask in masks
        ]
        rounds = [Round(of_folds, one, mask, wanted, n_threads) for one, mask in zip(new, masks, strict=True)]
    results: dict[Candidate, Result] = {}
    for number, candidate in enumerate(tried, 1):
        if not is_hopeless(candidate, results):
            found = in_threads(lambda one, what=candidate: one.evaluation(what), rounds, n_threads)  # type: ignore[misc]
            results[candidate] = result_of(found, n_threads)
        step_done(f"decider {number}/{len(tried)}: {candidate.decide}")
    # With many classes the machines of the candidates would be most of the memory of a fit.
    rounds.clear()
    decision = Round(trainer, everything, nobody, wanted, n_threads).decision(results)
    step_done(f"chosen decider: {decision.chosen.decide}")
    return decision


def decide_by_leaving_one_out(
    trainer: Trainer,
    grown: Grown,
    tried: list[Candidate],
    wanted: Wanted,
    n_threads: int,
    on_step: Callable[[str, float], None],
) -> Decision:
    """Choose among machines that are trained once, by their leave-one-out values."""
    training_set = trainer.training_set
    assert isinstance(training_set, KernelTrainingSet)
    keys = row_keys(training_set.X, pairwise=training_set.source.function.kernel == "precomputed")
    rows = Rows.one_by_one(training_set, keys)
    everything = leave_one_out(rows, grown)
    validation = np.zeros(len(rows.order), dtype=np.bool_)
    if is_choice(tried):
        n_rows = defaults.VALIDATION_ROWS if len(tried) > 1 else defaults.WEIGHING_ROWS
        validation[rows.order[everything.counted[rows.order] > 0.0][:n_rows]] = True
    final = Round(trainer, everything, np.zeros_like(validation), wanted, n_threads)
    # Candidates that differ by their finalists share the machines between the most of them.
    largest = {one.decide: one for one in sorted(tried, key=lambda one: one.n_finalists)}
    deciding = {kind: final.decider(one) for kind, one in largest.items()}
    parts = {kind: list(everything.parts(validation, machines)) for kind, (_, machines) in deciding.items()}
    results = {}
    for number, candidate in enumerate(tried, 1):
        kind = candidate.decide
        evaluation = Evaluation(everything, validation, candidate, wanted.width, deciding[kind][0], parts[kind])
        results[candidate] = result_of([evaluation] if validation.any() else [], n_threads)
        on_step(f"decider {number}/{len(tried)}: {kind}", number / (len(tried) + 1))
    # Without the machines that only other candidates would ask.
    decision = final.decision(results)
    on_step(f"chosen decider: {decision.chosen.decide}", 1.0)
    return decision


def is_choice(tried: list[Candidate]) -> bool:
    """Return whether validation rows are needed: to choose, or to weigh scores other than those of paths."""
    return len(tried) > 1 or tried[0].decide != "paths"


def validation_parts(rows: Rows) -> list[Mask]:
    """Return parts of the rows that are left out in turn; each has rows of all folds."""
    n_rows, most = len(rows.order), defaults.MOST_VALIDATION_ROWS
    rank = np.empty(n_rows, dtype=np.uint64)
    rank[rows.order] = np.arange(n_rows, dtype=np.uint64)
    part = deal(rank, rows.training_set.class_start, np.ones(n_rows), defaults.PARTS).fold
    masks = [part == number for number in range(defaults.number_of_parts(n_rows))]
    for mask in masks:
        mask[rows.order[mask[rows.order]][most:]] = False
    return masks


def enough_of(masks: list[Mask], n_rows: int) -> list[Mask]:
    """Return the first masks that together have so many rows."""
    before = np.cumsum([0, *(int(mask.sum()) for mask in masks)])
    return [mask for mask, count in zip(masks, before[:-1], strict=True) if count < n_rows]


def is_hopeless(candidate: Candidate, results: dict[Candidate, Result]) -> bool:
    """Return whether the same decider is already clearly behind with fewer finalists or a smaller C."""

    def kind(one: Candidate) -> tuple[str, str, float, bool, bool]:
        # With C = 0 nothing is trained, so the result says little about larger C.
        return one.decide, one.loss, one.offset_scale, one.weighs_path, one.cost_factor > 0.0

    known = {one: result for one, result in results.items() if kind(one) == kind(candidate) and result.importance.any()}
    if not known:
        return False
    as_many = {one: result for one, result in known.items() if one.n_finalists == candidate.n_finalists}
    loss, error = best_of(results).gain_over(best_of(as_many or known))
    return loss > defaults.CLEARLY_BEHIND * error


def is_worth_its_path(candidate: Candidate, results: dict[Candidate, Result]) -> bool:
    """Return whether a candidate has no path, or is better with it than the same machines without.

    Validation is optimistic about paths, because the structure of the tree was learned from all rows.
    """

    def machines(one: Candidate) -> tuple[str, str, float, float]:
        return one.decide, one.loss, one.offset_scale, one.cost_factor

    without = [one for one in results if machines(one) == machines(candidate) and not one.weighs_path]
    if not candidate.weighs_path or not without:
        return True
    gain, error = results[candidate].gain_over(best_of({one: results[one] for one in without}))
    return gain > defaults.ENOUGH * error


def best_of(results: dict[Candidate, Result]) -> Result:
    """Return the result with the highest accuracy."""
    return max(results.values(), key=lambda result: result.accuracy)


def choose(results: dict[Candidate, Result]) -> tuple[Candidate, list[CandidateRecord]]:
    """Return the cheapest candidate that is as good as the best, and a record of all.

    Of candidates with the same cost, the most accurate one is chosen.
    """
    usual = max(results, key=defaults.rank_without_validation)
    if not results[usual].importance.any():
        # There are no informative validation rows, as with one row per class.
        return usual, []
    allowed = {one: result for one, result in results.items() if is_worth_its_path(one, results)}
    best = best_of(allowed)
    behind = {one: best.gain_over(result) for one, result in results.items()}
    cost = {one: float(result.n_evaluations.mean()) for one, result in results.items()}
    chosen = min(
        (one for one in allowed if behind[one][0] <= defaults.ENOUGH * behind[one][1]),
        key=lambda c: (cost[c], behind[c]),
    )
    return chosen, [
        CandidateRecord(
            **vars(one),
            accuracy=result.accuracy,
            behind=behind[one][0],
            standard_error=behind[one][1],
            n_evaluations=cost[one],
            is_chosen=one == chosen,
        )
        for one, result in results.items()
    ]


class Round:
    """Validation rows, and deciders that are trained without them; without validation rows, deciders of all rows."""

    def __init__(self, trainer: Trainer, held_out: HeldOut, validation: Mask, wanted: Wanted, n_threads: int) -> None:
        self.trainer, self.held_out, self.validation = trainer, held_out, validation
        self._wanted, self._n_threads = wanted, n_threads
        # Candidates that differ by their finalists or by the weight of the path share their machines.
        self._machines: dict[Candidate, tuple[list[NodeClassifier], float]] = {}
        self._pairs: tuple[Index, list[NodeClassifier] | WeightTable] | None = None
        # Relative duality gap of machines that were trained together, where it was not closed.
        self.open_gap = 0.0

    def decider(self, candidate: Candidate) -> tuple[Decider, list[NodeClassifier]]:
        """Return the decider of a candidate, and its machines."""
        facts: dict[str, Any] = {}
        machines: list[NodeClassifier] | WeightTable = []
        if candidate.decide == "pairs":
            machines, start, other = self._train_pairs(candidate)
            facts = {"pair_start": start, "pair_other": other}
        elif candidate.decide == "rest":
            machines, path_weight = self._machines_against_the_rest(
                replace(candidate, n_finalists=defaults.LISTED, gap=defaults.LIST_GAP, weighs_path=False)
            )
            facts = {"path_weight": path_weight}
        decider = self.held_out.rows.decider(candidate.decide, machines, **facts)
        return decider, machines if isinstance(machines, list) else []

    def decision(self, results: dict[Candidate, Result]) -> Decision:
        """Choose a candidate by the results, and train its decider."""
        chosen, records = choose(results)
        decider, machines = self.decider(chosen)
        decider = weighed_decider(decider, results[chosen].slope, results[chosen].path_weight)
        original = self.held_out.rows.original
        of_kernel = [machine for machine in machines if isinstance(machine, KernelClassifier)]
        numbered = [replace(machine, row_index=original[machine.row_index]) for machine in of_kernel]
        return Decision(self.held_out.sigmoids, decider, numbered, chosen, records, self.open_gap)

    def evaluation(self, candidate: Candidate) -> Evaluation:
        """Return the decider of a candidate with its validation rows."""
        decider, machines = self.decider(candidate)
        parts = list(self.held_out.parts(self.validation, machines))
        return Evaluation(self.held_out, self.validation, candidate, self._wanted.width, decider, parts)

    def _train_pairs(self, candidate: Candidate) -> tuple[list[NodeClassifier] | WeightTable, Index, Index]:
        """Train machines between all classes that meet, or between those needed for the validation rows."""
        n_classes, asked = self.trainer.training_set.n_classes, self.validation
        size, width = candidate.n_finalists, candidate.beam(self._wanted.width)
        if self.held_out.rows.leave_one_out and n_classes * (n_classes - 1) // 2 <= len(asked):
            pairs = all_pairs(n_classes)
        elif asked.any():
            pairs = pairs_that_meet(
                self.held_out.finalists(asked, width, candidate.gap, size, self._n_threads)[0], None, n_classes
            )
        else:
            finalists, _ = self.held_out.finalists(~asked, width, np.inf, size, self._n_threads)
            pairs = pairs_that_meet(finalists, self.held_out.rows.classes, n_classes)
        machines = self._machines_of_pairs(pairs)
        return machines, *pairs_by_class(pairs, n_classes)

    def _machines_of_pairs(self, pairs: Index) -> list[NodeClassifier] | WeightTable:
        """Train machines between pairs; those of an earlier candidate, with fewer finalists, are reused."""
        options = (~self.validation, self._wanted.prune, self._n_threads)
        keys = pairs[:, 0] * self.trainer.training_set.n_classes + pairs[:, 1]
        if self._pairs is None:
            machines = train_pairs(self.trainer, pairs, *options)
        else:
            known, machines = self._pairs
            new = ~np.isin(keys, known)
            if new.any():
                machines = joined(machines, train_pairs(self.trainer, pairs[new], *options))
                known = np.concatenate([known, keys[new]])
            order = np.argsort(known)
            machines = selected(machines, order[np.searchsorted(known[order], keys)])
        self._pairs = keys, machines
        return machines

    def _machines_against_the_rest(self, candidate: Candidate) -> tuple[list[NodeClassifier], float]:
        """Return the machine of each class, and the weight of the path in their offset."""
        if candidate not in self._machines:
            training_set = self.trainer.training_set
            if candidate.loss == "squared_hinge" and defaults.learns_from_all(training_set):
                trainer = self.trainer.with_cost(candidate.cost_factor)
                trained = train_against_all(trainer, ~self.validation, self._wanted.prune, self._n_threads), 0.0
            elif candidate.loss == "log":
                tol, max_iter = max(self.trainer.tol, defaults.FOLD_TOL), self.trainer.max_iter
                if self.validation.any():
                    max_iter = min(max_iter, defaults.FOLD_EPOCHS)
                machines, path_weight, gap = self._by_softmax.train(candidate.cost_factor, tol, max_iter)
                trained, self.open_gap = (machines, path_weight), gap if gap > tol else 0.0
            else:
                trained = self._on_lists.train(candidate.offset_scale, candidate.cost_factor)
            if candidate.loss != "log":
                # Only machines of logistic regression are used again, with more finalists.
                self._machines.clear()
            self._machines[candidate] = trained
        return self._machines[candidate]

    @cached_property
    def _importance(self) -> Array:
        return np.where(self.validation, 0.0, self.held_out.rows.importance)

    def _lists_of_all(self, form: Callable[..., Any]) -> Any:
        training_set, size, width = self.trainer.training_set, defaults.LISTED, self._wanted.width
        if defaults.has_covariance(training_set):
            size = defaults.LISTED_OF_DENSE
            width = width and max(width, size)
        size = min(size, training_set.n_classes)
        return self.held_out.lists(width, defaults.LIST_GAP, size, self._n_threads, form)

    @cached_property
    def _on_lists(self) -> ListTrainer:
        class_start = self.trainer.training_set.class_start
        lists = self._lists_of_all(partial(Lists.of, class_start))
        return ListTrainer(self.trainer, lists, self._importance, self._wanted.prune, self._n_threads)

    @cached_property
    def _by_softmax(self) -> SoftmaxTrainer:
        rows, training_set = self.held_out.rows, self.trainer.training_set
        assert isinstance(training_set, LinearTrainingSet)
        if defaults.learns_from_all(training_set):
            lists = RowLists.of_all(rows.classes, training_set.n_classes)
        else:
            lists = self._lists_of_all(partial(RowLists.of, rows.classes))
        return SoftmaxTrainer.of(training_set, lists, self._importance, rows.order)
