"""
Accuracy and latency of all methods
===================================

All estimators of margintree use the same solvers, so that this comparison does not depend on the implementation. Trees,
one-vs-rest, one-vs-one, the decision DAG, error-correcting output codes and Crammer-Singer are trained on the digits
of scikit-learn with the linear kernel.
"""

# %%
# All methods have the same C; tuning would change their order slightly.
import time

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

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

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)

methods = {
    "margin tree": MarginTreeClassifier(C=10, random_state=0),
    "margin tree, greedy": MarginTreeClassifier(C=10, walk="greedy", random_state=0),
    "random tree, greedy": MarginTreeClassifier(C=10, split="random", walk="greedy", random_state=0),
    "label tree": LabelTreeClassifier(C=10, random_state=0),
    "filter tree": FilterTreeClassifier(C=10, random_state=0),
    "conditional probability tree": ConditionalProbabilityTreeClassifier(node="svm", C=10, random_state=0),
    "one-vs-rest": OneVsRestSVC(C=10, random_state=0),
    "one-vs-one": OneVsOneSVC(C=10, random_state=0),
    "decision DAG": DecisionDAGClassifier(C=10, random_state=0),
    "output code": OutputCodeSVC(C=10, random_state=0),
    "Crammer-Singer": AllTogetherSVC(C=10, random_state=0),
}

# %%
# Fit each method, and time predictions of single rows with its compiled predictor: the fastest of five passes over
# 200 rows.
results = {}
for name, method in methods.items():
    method.fit(X_train, y_train)
    predict = method.single_instance().predict
    passes = []
    for _ in range(5):
        start = time.perf_counter()
        for row in X_test[:200]:
            predict(row)
        passes.append((time.perf_counter() - start) / 200)
    results[name] = 1e6 * min(passes), method.score(X_test, y_test), method.n_evaluations(X_test).mean()
    print(f"{name:30} {results[name][0]:6.1f} us  accuracy {results[name][1]:.3f}  {results[name][2]:5.1f} evaluations")

# %%
# Methods in the upper left are accurate and fast. Times of a few microseconds depend on the machine and its load.
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
for ax, column, label in [(axes[0], 2, "Decision functions per prediction"), (axes[1], 0, "Microseconds for one row")]:
    for number, (name, result) in enumerate(results.items()):
        ax.plot(result[column], result[1], "osD^vP"[number % 6], color=f"C{number % 10}", markersize=9, label=name)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)
    ax.set_xlabel(label)
axes[0].set_ylabel("Accuracy on test rows")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
plt.show()
