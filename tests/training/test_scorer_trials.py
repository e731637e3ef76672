"""The jury: what a trial must not know of it, that new rows agree with it, and what it chooses."""

import numpy as np
import pytest
import scipy.sparse as sp

from margintree import MarginTreeClassifier
from margintree.solvers.training_set import LinearTrainingSet
from margintree.training import refinement, scorer_trials
from margintree.training.held_out import deal_rows
from margintree.training.jury import GAPS, LEANS, PRICE, JuryScores, together
from margintree.training.leaf_scorers import LeafTrainer, fit_blend, pairs_of
from margintree.training.scorer_trials import STARTS, STARTS_BY_ROWS, Hearing, Trial, best_trial, choose

N_CLASSES, PER_CLASS = 6, 14
JURY = np.arange(N_CLASSES * PER_CLASS) % 7 == 0


def leaf_trainer(*, signal=1.0, noise=1.0, spread=1.0, change=None, seed=0):
    """Return a trainer whose path scores know the own class by ``signal``; all classes are listed."""
    random = np.random.default_rng(seed)
    class_of_row = np.repeat(np.arange(N_CLASSES), PER_CLASS)
    X = random.normal(size=(N_CLASSES, 5))[class_of_row] + spread * random.normal(size=(len(class_of_row), 5))
    scores = noise * random.normal(size=(len(X), N_CLASSES)) - 2.0
    own = np.arange(len(X)), class_of_row
    scores[own] += signal
    X, weight = X if change is None else change(X), np.ones(len(X))
    training_set = LinearTrainingSet(X, np.arange(0, len(X) + 1, PER_CLASS), weight, weight, fit_intercept=True)
    listed = np.tile(np.arange(N_CLASSES), (len(X), 1))
    pairs = pairs_of(training_set, weight, listed, scores, scores[own])
    return LeafTrainer(training_set, pairs, weight, weight, 0.0, 1e-8, 100_000, 0, 1)


def test_scores_of_a_trial_do_not_change_with_the_rows_of_the_jury(monkeypatch):
    """Scorers are compared by what they would give to the rows as they were."""
    found = []

    def kept(rows, row_index, classes, scorers, result):
        found.append(scorers)
        result[:] = 0.0

    monkeypatch.setattr(scorer_trials.kernels.ranking, "pair_scores", kept)
    blends, change = [], lambda X: np.where(JURY[:, None], -10.0 * X, X)
    for trainer in (leaf_trainer(), leaf_trainer(change=change)):
        hearing = Hearing(trainer, JURY, trainer.weight)
        blends.append((hearing.blend, fit_blend(trainer.pairs, trainer.importance)))
        for start in STARTS:
            hearing.scores(*start)
    assert len(found) == 2 * len(STARTS)
    for one, other in zip(found[: len(STARTS)], found[len(STARTS) :], strict=True):
        for a, b in zip(one[0] + one[1:3], other[0] + other[1:3], strict=True):
            np.testing.assert_array_equal(a, b)
    assert blends[0][0] == blends[1][0]
    # Those that are kept know all rows.
    assert blends[0][1] != blends[1][1]


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_the_jury_gets_the_scores_that_all_scorers_together_give(monkeypatch, at_once):
    monkeypatch.setattr(scorer_trials, "CLASSES_AT_ONCE", at_once)
    monkeypatch.setattr(scorer_trials, "CLASSES_PER_TASK", 1)
    hearing, (trust, cost_factor) = Hearing(leaf_trainer(), JURY, np.ones(len(JURY))), STARTS[0]
    trainer, start = hearing.trainer_without, hearing.blend.times(trust)
    weights, intercepts = np.zeros((N_CLASSES, 5)), np.zeros(N_CLASSES)
    for k, scorer in enumerate(trainer.train(start, cost_factor, ~JURY)):
        weights[k, scorer.columns], intercepts[k] = scorer.weights, scorer.intercept
    scores = hearing.scores(trust, cost_factor)
    rows = np.flatnonzero(JURY)
    path_scores = scores.path_score.reshape(len(rows), N_CLASSES)
    expected = trainer.training_set.X[rows, :5] @ weights.T + intercepts + start.path_weight * path_scores
    np.testing.assert_allclose(scores.score.reshape(expected.shape), expected, atol=1e-3)


def words_of_classes(n_classes, per_class, random):
    """Return bags of words that classes own or share with a group of ten, under noise."""
    y = np.repeat(np.arange(n_classes), per_class)
    own = random.integers(600, size=(n_classes, 6))
    shared = random.integers(600, size=(n_classes // 10, 6))
    draws = random.integers(600, size=(len(y), 20))
    draws[:, :2] = own[y[:, None], random.integers(6, size=(len(y), 2))]
    draws[:, 3:8] = shared[y[:, None] // 10, random.integers(6, size=(len(y), 5))]
    X = np.zeros((len(y), 600))
    np.add.at(X, (np.arange(len(y))[:, None], draws), 1.0)
    return sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True)), y


@pytest.mark.parametrize(
    ("start", "harder_by"),
    # Starting from nothing, the intercepts take some of the harm away.
    [(STARTS[0], 0.02), (STARTS[1], 0.01)],
    ids=["trusting", "from nothing"],
)
def test_new_rows_agree_with_the_jury(monkeypatch, start, harder_by):
    """A jury that machines of other folds have seen is harder on the scorers than new rows are."""
    X, y = words_of_classes(60, 50, np.random.default_rng(0))
    is_new = np.tile(np.arange(50) >= 20, 60)
    X, y, X_new, y_new = X[~is_new], y[~is_new], X[is_new], y[is_new]
    said = []

    def only(tried, starts):
        trial = tried(*start)
        said.append(trial.scores.mean(trial.is_right))
        return trial

    monkeypatch.setattr(scorer_trials, "best_trial", only)
    parameters = {"calibration_folds": 5, "walk": "all", "shortlist": 10, "random_state": 0}
    truth = MarginTreeClassifier(**parameters).fit(X, y).score(X_new, y_new)
    assert truth - 0.08 < said[0] < truth
    machines_without, fold = refinement.machines_without, deal_rows(X, np.arange(0, 1201, 20), 5).fold

    def only_without_the_fold(trainer, tree, left_out, *rest):
        # All of the fold is left out, of the others a jury.
        (number,) = (q for q in range(5) if left_out[fold == q].all())
        return machines_without(trainer, tree, fold == number, *rest)

    monkeypatch.setattr(refinement, "machines_without", only_without_the_fold)
    MarginTreeClassifier(**parameters).fit(X, y)
    # With all rows machines and scorers are a little better; taught by the jury's rows they look worse to it.
    assert said[1] < said[0] - harder_by


def trial_of(is_right, start, weight=None, weight_of_copies=None):
    """Return a trial in which just these rows are right."""
    n_rows = len(is_right)
    score = np.column_stack([np.where(is_right, 1.0, -1.0), np.zeros(n_rows)]).ravel()
    is_own, path_score = np.tile([True, False], n_rows), np.zeros(2 * n_rows, np.float32)
    weight = np.ones(n_rows) if weight is None else weight
    weight_of_copies = weight if weight_of_copies is None else weight_of_copies
    return Trial(
        *start, JuryScores(np.arange(0, 2 * n_rows + 1, 2), score, path_score, is_own, weight, weight_of_copies)
    )


def right_rows(number, count):
    """Return ``count`` of 100 rows, four of them rows that are right at this start only."""
    is_right = np.arange(100) < count - 4
    is_right[96 - 4 * number : 100 - 4 * number] = True
    return is_right


def best_and_tried(counts, starts):
    """Return the start that is taken and those that were tried, if so many rows are right at each of ``STARTS``."""
    tried = []

    def trial(*start):
        tried.append(start)
        number = STARTS.index(start)
        return trial_of(right_rows(number, counts[number]), start)

    best = best_trial(trial, starts)
    return (best.trust, best.cost_factor), tried


# Two starts with the same count differ on eight rows, so that a standard error is about three rows: sqrt(8).
@pytest.mark.parametrize(
    ("counts", "expected", "n_tried"),
    [
        ([60, 44, 70, 70], 0, 2),  # worse by more than three errors: hopeless
        ([60, 53, 70, 70], 2, 4),  # by less: there is hope
        ([60, 58, 59, 70], 0, 3),  # two misses end it
        ([60, 62, 62, 60], 0, 3),  # a gain of two thirds of an error is not enough to give up the offset
        ([60, 64, 64, 61], 1, 3),  # of more than one it is, and of equal ones the first is taken
        ([58, 64, 67, 62], 1, 4),  # also if it is worse by nearly an error
        ([58, 62, 67, 62], 2, 4),  # not if it is worse by more
        ([60, 66, 65, 80], 1, 3),  # from nothing, a C that is too large is not made larger
        ([50, 56, 62, 68], 3, 4),
    ],
)
def test_the_first_start_that_is_as_good_as_the_best_is_taken(counts, expected, n_tried):
    best, tried = best_and_tried(counts, STARTS)
    assert best == STARTS[expected]
    assert len(tried) == n_tried


@pytest.mark.parametrize(
    ("counts", "expected", "n_tried"),
    [
        ([63, 61, 60, 60], 1, 4),  # a gain of less than an error is not enough for the offset
        ([66, 61, 60, 60], 0, 4),  # of more it is
        ([60, 61, 60, 70], 1, 3),  # from nothing, a C that is too large is not made larger
        ([60, 64, 65, 66], 1, 4),  # nor for a larger C
        ([60, 64, 68, 70], 2, 4),
    ],
)
def test_one_class_against_all_others_may_go_first(counts, expected, n_tried):
    best, tried = best_and_tried(counts, STARTS_BY_ROWS)
    assert tried[0] == STARTS[1]
    assert best == STARTS[expected]
    assert len(tried) == n_tried


@pytest.mark.parametrize("asks_all", [False, True])
@pytest.mark.parametrize("density", [0.05, 0.2])
def test_it_does_so_for_rows_that_are_mostly_zeros_where_all_classes_may_be_asked(monkeypatch, asks_all, density):
    monkeypatch.setattr(LinearTrainingSet, "density", density)
    starts = []
    monkeypatch.setattr(scorer_trials, "best_trial", lambda trial, order: starts.append(order) or trial(0.0, 2.0))
    trainer = leaf_trainer()
    trial = choose([Hearing(trainer, JURY, trainer.weight)], asks_all=asks_all)
    by_rows = asks_all and density < 0.1
    assert starts == [STARTS_BY_ROWS if by_rows else STARTS]
    assert (trial.asks_all, trial.by_rows) == (asks_all, by_rows)


def test_the_gain_and_its_error_are_those_of_paired_rows_and_copies_add_nothing():
    random = np.random.default_rng(0)
    right, weight = random.random((2, 500)) < 0.7, random.integers(1, 4, 500)
    one, other = (trial_of(is_right, STARTS[0], weight.astype(float)) for is_right in right)
    difference = right[0].astype(float) - right[1]
    gain, error = one.gain_over(other)
    assert gain == pytest.approx(np.average(difference, weights=weight))
    assert error == pytest.approx(np.sqrt(np.square(weight * difference).sum()) / weight.sum())
    # A row of weight 3 is a row that stands there three times.
    copies = np.repeat(np.arange(500), weight)
    one, other = (trial_of(is_right[copies], STARTS[0], None, weight[copies]) for is_right in right)
    assert one.gain_over(other) == pytest.approx((gain, error))


def test_without_a_jury_the_first_start_is_taken():
    empty = JuryScores(
        np.zeros(1, np.int64), np.zeros(0), np.zeros(0, np.float32), np.zeros(0, bool), np.zeros(0), np.zeros(0)
    )
    best = best_trial(lambda *start: Trial(*start, empty))
    assert (best.trust, best.cost_factor) == STARTS[0]
    assert best.scores.temperature() == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_wide_where_paths_say_nothing_and_narrow_where_they_are_sure(seed):
    """Without a word from the paths a narrow gap would throw away what the scorers find."""
    unsure, sure = (
        choose([Hearing(trainer, JURY, trainer.weight)]).scores.best_gap()
        for trainer in (leaf_trainer(signal=signal, spread=0.2, noise=5.0, seed=seed) for signal in (0.0, 30.0))
    )
    assert unsure > GAPS[0] == sure


def scores_of(score, path_score, is_own):
    """Return the scores of a jury from matrices with a row for each of its rows."""
    n_rows, n_listed = np.shape(score)
    start, ones = np.arange(0, n_rows * n_listed + 1, n_listed), np.ones(n_rows)
    return JuryScores(
        start, np.ravel(score).astype(float), np.ravel(path_score).astype(np.float32), np.ravel(is_own), ones, ones
    )


@pytest.mark.parametrize(("n_saved", "expected"), [(0, 0), (1, 0), (3, 1), (30, 1)])
def test_a_wider_gap_must_save_its_price_in_rows(n_saved, expected):
    """Each row has a class between the first two gaps; only in some rows it is the one that is right."""
    n_rows = 10_000
    path_score = np.tile([0.0, -(GAPS[0] + GAPS[1]) / 2], (n_rows, 1))
    is_saved = np.arange(n_rows) < n_saved
    # The far class wins where it is right, so that no row is lost.
    score = np.column_stack([np.zeros(n_rows), np.where(is_saved, 1.0, -1.0)])
    scores = scores_of(score, path_score, np.column_stack([~is_saved, is_saved]))
    assert (n_saved / n_rows > PRICE) == bool(expected)
    assert scores.best_gap() == GAPS[expected]


def test_what_lies_beyond_a_gap_is_neither_right_nor_in_the_way():
    scores = scores_of([[1.0, 2.0], [2.0, 1.0]], [[0.0, -4.5], [-4.5, 0.0]], [[True, False], [True, False]])
    assert scores.is_right(4.0).tolist() == [True, False]
    assert scores.is_right(5.0).tolist() == [False, True]
    # Where nothing is said, paths within 5 count.
    for distance, expected in ((4.9, False), (5.1, True)):
        assert scores_of([[1.0, 2.0]], [[0.0, -distance]], [[True, False]]).is_right().tolist() == [expected]


def test_of_classes_that_tie_the_first_wins_as_in_prediction():
    tied = scores_of(np.zeros((3, 3)), np.zeros((3, 3)), np.eye(3, dtype=bool))
    assert tied.is_right().tolist() == [True, False, False]
    # Of those that are near.
    near = scores_of(np.zeros((3, 3)), np.tile([-9.0, 0.0, 0.0], (3, 1)), np.eye(3, dtype=bool))
    assert near.is_right().tolist() == [False, True, False]


@pytest.mark.parametrize("seed", range(2))
def test_what_the_jury_says_of_empty_rows_is_what_prediction_makes_of_them(monkeypatch, seed):
    """Without an intercept all scorers from nothing give them zero, and the first class gets them all."""
    said = []

    def heard(tried, starts):
        said.append(best_trial(tried, starts))
        return said[-1]

    monkeypatch.setattr(scorer_trials, "best_trial", heard)
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(8), 120)
    X = random.normal(size=(8, 10))[y] + 1.5 * random.normal(size=(len(y), 10))
    X[random.random(len(y)) < np.where(y == 7, 0.9, 0.1)] = 0.0
    is_new = np.arange(len(y)) % 2 == 1
    model = MarginTreeClassifier(fit_intercept=False, random_state=0).fit(X[~is_new], y[~is_new])
    assert model.score(X[is_new], y[is_new]) == pytest.approx(said[0].scores.mean(said[0].is_right), abs=0.1)


@pytest.mark.parametrize("lean", LEANS)
def test_the_lean_is_found_that_makes_rows_right(lean):
    """Scores lack just so much of the path; more of it would spoil rows in which the path is wrong."""
    random = np.random.default_rng(0)
    path_score = -4.0 * random.random((4000, 3))
    truth = random.normal(size=(4000, 3))
    is_own = truth == truth.max(axis=1, keepdims=True)
    assert scores_of(truth - lean * path_score, path_score, is_own).best_lean() == lean


def test_without_the_path_all_classes_are_heard_where_all_would_be_asked():
    """Far from the best path a class scores highest for most rows: within the gap nobody hears of it."""
    n_rows = 200
    score = np.tile([1.0, 0.0, 2.0], n_rows)
    path_score = np.tile([0.0, -1.0, -9.0], n_rows).astype(np.float32)
    is_own, weight = np.tile([True, False, False], n_rows), np.ones(n_rows)
    heard = JuryScores(np.arange(0, 3 * n_rows + 1, 3), score, path_score, is_own, weight, weight)
    assert heard.best_lean() == 0.0
    assert heard.best_lean(asks_all=True) == 0.2
    assert Trial(0.0, 2.0, heard, asks_all=True).lean == 0.2


def test_a_lean_that_chance_can_explain_is_not_taken():
    # Of two rows in which the path decides it is right once.
    path_score = [[0.0, -1.0], [0.0, -1.0]]
    tied = scores_of([[0.0, 0.15], [0.0, 0.15]], path_score, [[True, False], [False, True]])
    assert tied.best_lean() == 0.0
    helped = scores_of([[0.0, 0.15], [0.0, 0.15]], path_score, [[True, False], [True, False]])
    assert helped.best_lean() == LEANS[1]


def test_by_rows_a_lean_needs_a_gain_of_more_than_an_error():
    """The path puts four rows right and none wrong, a gain of two errors, or two wrong, which leaves less than one."""
    for n_wrong, expected in ((0, LEANS[1]), (2, 0.0)):
        score = np.tile([0.1, 0.0], 100)
        score[:8:2], path_score = -0.1, np.zeros(200, np.float32)
        path_score[:8:2] = 1.0
        path_score[9 : 9 + 2 * n_wrong : 2] = 1.0
        heard = JuryScores(
            np.arange(0, 201, 2), score, path_score, np.tile([True, False], 100), np.ones(100), np.ones(100)
        )
        assert Trial(0.0, 2.0, heard).lean == LEANS[1]
        assert Trial(0.0, 2.0, heard, by_rows=True).lean == expected


def test_only_scorers_from_nothing_lean_on_the_path(monkeypatch):
    """The offset of the others has the path already."""
    monkeypatch.setattr(JuryScores, "best_lean", lambda self, **how: 0.5)
    trainer = leaf_trainer()
    hearing = Hearing(trainer, JURY, trainer.weight)
    for trust, cost_factor in STARTS:
        trial = Trial(trust, cost_factor, hearing.scores(trust, cost_factor))
        path_weight = trial.scorers(trainer).path_weight
        expected = trust * fit_blend(trainer.pairs, trainer.importance).path_weight + trial.lean
        assert path_weight == pytest.approx(expected)
        assert trial.lean == (0.5 if trust == 0.0 else 0.0)


def test_what_decides_is_the_ranking_with_its_lean():
    """Scorers from nothing that are worse alone, but best with the path, are taken; the temperature is theirs."""
    random = np.random.default_rng(0)
    path_score = -4.0 * random.random((2000, 3))
    truth = random.normal(size=(2000, 3))
    is_own = truth == truth.max(axis=1, keepdims=True)
    noise = 0.3 * random.normal(size=truth.shape)

    def tried(trust, cost_factor):
        # The offset gives noisy scores; from nothing all of the truth but the path, and nothing else, is found.
        score = truth + noise if trust > 0.0 else truth - 0.5 * path_score
        return Trial(trust, cost_factor, scores_of(score, path_score, is_own))

    best = best_trial(tried)
    assert best.heard.mean(best.heard.is_right()) < tried(*STARTS[0]).scores.mean(tried(*STARTS[0]).is_right)
    assert (best.trust, best.lean, best.scores.mean(best.is_right)) == (0.0, 0.5, 1.0)
    trainer = leaf_trainer()
    assert best.scorers(trainer).temperature == best.scores.temperature() != best.heard.temperature()


def test_juries_are_heard_together():
    random = np.random.default_rng(1)
    parts = [trial_of(random.random(n) < 0.5, STARTS[0]).scores for n in (5, 0, 1, 9, 0)]
    everyone = together(parts)
    np.testing.assert_array_equal(everyone.is_right(), np.concatenate([part.is_right() for part in parts]))
    assert everyone.mean(everyone.is_right()) == pytest.approx(np.mean(np.concatenate([p.is_right() for p in parts])))


@pytest.mark.parametrize(("per_class", "n_heard"), [(20, 7), (1000, 2), (2400, 1)])
def test_small_sets_hear_more_juries(monkeypatch, per_class, n_heard):
    heard = []

    def counted(hearings, *, asks_all):
        heard.extend(hearings)
        return choose(hearings, asks_all=asks_all)

    monkeypatch.setattr(refinement, "choose", counted)
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(4), per_class)
    X = random.normal(size=(4, 3))[y] + 0.5 * random.normal(size=(len(y), 3))
    MarginTreeClassifier(calibration_folds=2, tol=0.1, random_state=0).fit(X, y)
    assert len(heard) == n_heard
    # No row is heard twice.
    assert np.sum([hearing.jury for hearing in heard], axis=0).max() == 1
    assert np.sum([hearing.jury for hearing in heard]) >= min(1000, len(y))


@pytest.mark.parametrize("copies", [2, 20])
def test_probabilities_of_a_weight_are_those_of_as_many_copies(copies):
    random = np.random.default_rng(copies)
    y = np.repeat(np.arange(5), 40)
    X = random.normal(size=(5, 4))[y] + random.normal(size=(len(y), 4))
    parameters = {"C": 0.1, "tol": 1e-8, "max_iter": 100_000, "random_state": 0}
    weighted = MarginTreeClassifier(**parameters).fit(X, y, np.full(len(y), float(copies)))
    rows = np.repeat(np.arange(len(y)), copies)
    repeated = MarginTreeClassifier(**parameters).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("per_class", [1, 30], ids=["one row", "equal rows"])
@pytest.mark.parametrize("n_classes", [3, 4, 10])
@pytest.mark.parametrize("seed", range(3))
def test_classes_of_one_different_row_are_told_apart(n_classes, per_class, seed):
    """Their machines never see a row like theirs, so held-out paths say nothing; what is left must still be right."""
    random = np.random.default_rng(seed)
    means = 10.0 * np.eye(n_classes, 12) + random.normal(size=(n_classes, 12))
    y = np.repeat(np.arange(n_classes), per_class)
    model = MarginTreeClassifier(random_state=0).fit(means[y], y)
    new = np.repeat(np.arange(n_classes), 5)
    assert model.score(means[new] + 0.1 * random.normal(size=(len(new), 12)), new) == 1.0
