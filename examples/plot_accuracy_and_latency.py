"""
Accuracy against latency of all methods
=======================================

All estimators of margintree use the same solvers, so that a comparison compares methods: trees, one-vs-rest, one-vs-one,
the decision DAG, error-correcting codes and all-together machines. Each dot is a method, trained on the digits of
scikit-learn with the linear kernel.
"""

# %%
# The candidates. All have the same C; tuning would change the order a little.
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
# Fit each and time single rows with its compiled predictor, the fastest of five passes over 200 rows.
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
# Up and to the left is better. Times of a few microseconds depend on the machine and on what else it does.
figure, axes = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
for ax, column, label in [
    (axes[0], 2, "Decision functions per prediction"),
    (axes[1], 0, "Microseconds for one row"),
]:
    for name, result in results.items():
        is_ours = name.startswith("margin")
        ax.plot(result[column], result[1], "o", color="C3" if is_ours else "C0", markersize=9 if is_ours else 7)
        ax.annotate(name, (result[column], result[1]), xytext=(6, 5), textcoords="offset points", fontsize=8)
    ax.set_xscale("log")
    ax.margins(x=0.25)
    ax.set_xlabel(label)
axes[0].set_ylabel("Accuracy on test rows")
plt.show()
