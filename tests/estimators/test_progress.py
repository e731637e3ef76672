"""How far a fit is: every estimator tells it to the terminal and to scikit-learn's callbacks."""

import copy
import pickle
import re
import subprocess
import sys

import interrupted_fits
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris

import margintree
from margintree import (
    AllTogetherSVC,
    ConditionalProbabilityTreeClassifier,
    DecisionDAGClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    MarginTreeClassifier,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
)
from margintree.estimators.base import MachineClassifier
from margintree.estimators.callbacks import FitProgress

# With the tasks of a fit on three classes.
ESTIMATORS = [
    (MarginTreeClassifier(random_state=0), ["node"] * 2),
    (MarginTreeClassifier("rbf", random_state=0), ["node"] * 2),
    (FilterTreeClassifier(random_state=0), ["machine"] * 2),
    (ConditionalProbabilityTreeClassifier(random_state=0), ["pass"]),
    (ConditionalProbabilityTreeClassifier(node="svm", random_state=0), ["pass", *["machine"] * 2]),
    (LabelTreeClassifier(n_folds=2, random_state=0), ["machine"] * 8),
    (LabelTreeClassifier(n_folds=2, joint=True, random_state=0), [*["machine"] * 6, "problem"]),
    (OneVsRestSVC(random_state=0), ["machine"] * 3),
    (OneVsRestSVC("rbf", n_jobs=2, random_state=0), ["machine"] * 3),
    (OneVsOneSVC(random_state=0), ["machine"] * 3),
    (OneVsOneSVC(n_jobs=2, random_state=0), ["machine"] * 3),
    (DecisionDAGClassifier(random_state=0), ["machine"] * 3),
    (OutputCodeSVC(code="one_vs_one", random_state=0), ["machine"] * 3),
    (AllTogetherSVC(random_state=0), ["problem"]),
]


def after_all(estimator, tasks):
    """Return what callbacks hear of: the tasks, and the choice of a decider, if there is one."""
    return [*tasks, "decider"] if isinstance(estimator, MarginTreeClassifier) else tasks


class Listener:
    """Keeps what it hears; with ``fails_at``, raises an error at so many ends of tasks."""

    def __init__(self, fails_at=None):
        self.events, self.fails_at, self.predictions = [], fails_at, None

    def setup(self, estimator, context):
        self.events.append(("setup", context.max_subtasks))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.events.append(("end", context.task_name))
        if self.fails_at == sum(event == "end" for event, _ in self.events):
            raise InterruptedError
        # A snapshot of a fit that goes on.
        copy.deepcopy(estimator.set_callbacks())
        assert type(pickle.loads(pickle.dumps(estimator))) is type(estimator)
        if fitted_estimator is not None:
            self.predictions = fitted_estimator.predict(load_iris().data)


@pytest.mark.parametrize("walked", [[estimator for estimator, _ in ESTIMATORS], interrupted_fits.ESTIMATORS])
def test_all_estimators_are_walked(walked):
    classes = [getattr(margintree, name) for name in margintree.__all__]
    estimators = {cls for cls in classes if isinstance(cls, type) and issubclass(cls, MachineClassifier)}
    assert {type(estimator) for estimator in walked} == estimators


@pytest.mark.parametrize(("estimator", "tasks"), ESTIMATORS, ids=str)
def test_verbose_prints_a_line_per_task(estimator, tasks, capsys):
    clone(estimator).fit(*load_iris(return_X_y=True))
    assert capsys.readouterr().out == ""
    clone(estimator).set_params(verbose=2).fit(*load_iris(return_X_y=True))
    others = ("held-out rows confused", "cross-validation of the nodes", "decider")
    lines = [line for line in capsys.readouterr().out.splitlines() if not any(other in line for other in others)]
    expected = [f"[margintree] {task} {number}/{len(tasks)}: " for number, task in enumerate(tasks, 1)]
    assert [re.match(r"\[margintree\] \w+ \d+/\d+: (?=\d+ )", line)[0] for line in lines] == expected


@pytest.mark.parametrize(("estimator", "tasks"), ESTIMATORS, ids=str)
def test_verbose_1_is_a_bar_for_the_tasks_and_one_for_the_decider_on_standard_error(estimator, tasks, capsys):
    clone(estimator).set_params(verbose=1).fit(*load_iris(return_X_y=True))
    output, errors = capsys.readouterr()
    assert output == ""
    # No terminal: one line each, at the end.
    name, tasks_done = type(estimator).__name__, f"{tasks[-1]} {len(tasks)}/{len(tasks)}"
    expected = [rf"{name} \S+ 100% \d:\d\d:\d\d {tasks_done}"]
    if after_all(estimator, tasks) != tasks:
        expected = [
            rf"{name}: nodes \S+ 100% \d:\d\d:\d\d {tasks_done}",
            rf"{name}: decider \S+ 100% \d:\d\d:\d\d chosen decider: \w+",
        ]
    assert re.fullmatch(" ".join(expected), " ".join(errors.split())), errors


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "first"), [("linear", "cross-validation of the nodes"), ("rbf", "decider 1/2: pairs")]
)
def test_the_bars_of_the_nodes_and_of_the_decider_fill_one_after_the_other(monkeypatch, kernel, first, n_jobs):
    bars = []
    monkeypatch.setattr(FitProgress, "_begin_bar", lambda self, name: bars.append((name, [], [])))
    monkeypatch.setattr(
        FitProgress, "_move_bar", lambda self, step, done: (bars[-1][1].append(step), bars[-1][2].append(done))
    )
    MarginTreeClassifier(kernel, n_jobs=n_jobs, verbose=1, random_state=0).fit(*load_iris(return_X_y=True))
    (nodes_name, nodes, nodes_done), (decider_name, steps, steps_done) = bars
    assert (nodes_name, decider_name) == ("MarginTreeClassifier: nodes", "MarginTreeClassifier: decider")
    assert (nodes, nodes_done) == (["node 1/2", "node 2/2"], [0.5, 1.0])
    assert steps_done == sorted(steps_done)
    assert steps_done[0] > 0.0
    assert steps_done[-1] == pytest.approx(1.0)
    assert steps[0] == first
    assert any(step.startswith("decider 1/") for step in steps)
    assert steps[-1].startswith("chosen decider: ")


@pytest.mark.parametrize("decide", ["auto", "paths", "pairs", "rest"])
@pytest.mark.parametrize("n_rows", [400, 1797])
def test_all_steps_of_the_decider_are_counted(monkeypatch, decide, n_rows):
    shown = []
    monkeypatch.setattr(FitProgress, "_move_bar", lambda self, step, done: shown.append(done))
    X, y = load_digits(return_X_y=True)
    MarginTreeClassifier(decide=decide, split="centroid", random_state=0).fit(X[:n_rows], y[:n_rows])
    assert shown[-1] == pytest.approx(1.0)
    assert max(shown) <= 1.0


def test_a_bar_of_an_interrupted_fit_is_taken_away(monkeypatch):
    def fail(self, description, done):
        bars.append(self._bars)
        raise InterruptedError

    bars = []
    monkeypatch.setattr(FitProgress, "step_done", fail)
    with pytest.raises(InterruptedError):
        MarginTreeClassifier(verbose=1, random_state=0).fit(*load_iris(return_X_y=True))
    assert not bars[0].live.is_started


def test_rich_is_imported_for_a_bar_only():
    # scikit-learn imports it where it is installed; None stands for a package that cannot be imported.
    code = (
        "import sys; sys.modules['rich'] = None;"
        "from margintree import OneVsRestSVC; OneVsRestSVC(max_iter=2).fit([[0.0], [1.0]], [0, 1])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("estimator", "tasks"), ESTIMATORS, ids=str)
def test_callbacks_hear_of_every_task(estimator, tasks):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    listener, (X, y) = Listener(), load_iris(return_X_y=True)
    model = clone(estimator).set_callbacks(listener).fit(X, y)
    tasks = after_all(estimator, tasks)
    heard = [(event, task) for task in tasks for event in ("begin", "end")]
    assert listener.events[0] == ("setup", len(tasks))
    assert listener.events[1:] == [("begin", "fit"), *heard, ("end", "fit"), ("teardown", "fit")]
    assert listener.predictions.tolist() == model.predict(X).tolist()
    assert set(vars(model)) == set(vars(clone(estimator).fit(X, y)))


@pytest.mark.parametrize(("estimator", "tasks"), ESTIMATORS, ids=str)
def test_an_error_in_a_callback_ends_the_fit_and_nothing_is_heard_after_it(estimator, tasks):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    X, y = load_iris(return_X_y=True)
    tasks = after_all(estimator, tasks)
    model = clone(estimator).fit(X, y)
    before, attributes = model.predict(X).tolist(), set(vars(model))
    for fails_at in {1, len(tasks), len(tasks) + 1}:
        listener = Listener(fails_at)
        with pytest.raises(InterruptedError):
            model.set_callbacks(listener).fit(X[:, :2], y)
        assert listener.events[-1] == ("teardown", "fit")
        assert sum(event == "end" for event, _ in listener.events) == fails_at
        assert set(vars(model.set_callbacks())) == attributes
        assert model.predict(X).tolist() == before
