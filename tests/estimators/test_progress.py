"""How far a fit is: every estimator tells it to the terminal and to scikit-learn's callbacks."""

import copy
import pickle
import re

import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

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


def test_all_estimators_are_walked():
    classes = [getattr(margintree, name) for name in margintree.__all__]
    estimators = {cls for cls in classes if isinstance(cls, type) and issubclass(cls, MachineClassifier)}
    assert {type(estimator) for estimator, _ in ESTIMATORS} == estimators


@pytest.mark.parametrize(("estimator", "tasks"), ESTIMATORS, ids=str)
def test_verbose_prints_a_line_per_task(estimator, tasks, capsys):
    clone(estimator).fit(*load_iris(return_X_y=True))
    assert capsys.readouterr().out == ""
    clone(estimator).set_params(verbose=1).fit(*load_iris(return_X_y=True))
    lines = [line for line in capsys.readouterr().out.splitlines() if "held-out rows confused" not in line]
    expected = [f"[margintree] {task} {number}/{len(tasks)}: " for number, task in enumerate(tasks, 1)]
    assert [re.match(r"\[margintree\] \w+ \d+/\d+: (?=\d+ )", line)[0] for line in lines] == expected


@pytest.mark.parametrize(("estimator", "tasks"), ESTIMATORS, ids=str)
def test_callbacks_hear_of_every_task(estimator, tasks):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    listener, (X, y) = Listener(), load_iris(return_X_y=True)
    model = clone(estimator).set_callbacks(listener).fit(X, y)
    heard = [(event, task) for task in tasks for event in ("begin", "end")]
    assert listener.events[0] == ("setup", len(tasks))
    assert listener.events[1:] == [("begin", "fit"), *heard, ("end", "fit"), ("teardown", "fit")]
    assert listener.predictions.tolist() == model.predict(X).tolist()
    assert set(vars(model)) == set(vars(clone(estimator).fit(X, y)))


@pytest.mark.parametrize(("estimator", "tasks"), ESTIMATORS, ids=str)
def test_an_error_in_a_callback_ends_the_fit_and_nothing_is_heard_after_it(estimator, tasks):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    X, y = load_iris(return_X_y=True)
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
