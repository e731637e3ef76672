"""
Tuning C and balance, and checking the probabilities
====================================================

:class:`~margintree.MarginTreeClassifier` works with ``GridSearchCV`` like any other classifier of scikit-learn. Its
probabilities are calibrated on held-out rows during ``fit``, so that it does not need ``CalibratedClassifierCV``.
"""

# %%
# Search over C and balance. With ``decide="pairs"`` the decider is fixed, so that it is not chosen again in every fit.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split

from margintree import MarginTreeClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
grid = {"C": [0.1, 1, 10], "balance": [0.1, 0.3, 0.6]}
search = GridSearchCV(MarginTreeClassifier(decide="pairs", random_state=0), grid, cv=3).fit(X_train, y_train)
print(search.best_params_)

# %%
# Compare the probabilities of the best model with those of a calibrated ``LinearSVC``. Each point is a
# tenth of the test rows, sorted by the probability of the predicted class. On the diagonal, the mean probability equals
# the accuracy.
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import LinearSVC

models = {
    "MarginTreeClassifier": search.best_estimator_,
    "CalibratedClassifierCV(LinearSVC())": CalibratedClassifierCV(LinearSVC()).fit(X_train, y_train),
}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
scores = search.cv_results_["mean_test_score"].reshape(len(grid["C"]), len(grid["balance"]))
image = left.imshow(scores, cmap="viridis")
for (i, j), score in np.ndenumerate(scores):
    left.text(j, i, f"{score:.3f}", ha="center", va="center", bbox={"facecolor": "white", "edgecolor": "none"})
left.set_xticks(range(len(grid["balance"])), grid["balance"])
left.set_yticks(range(len(grid["C"])), grid["C"])
left.set(xlabel="balance", ylabel="C", title="Accuracy in cross-validation")
figure.colorbar(image, ax=left, shrink=0.8)

right.plot([0, 1], [0, 1], color="gray", linewidth=1, linestyle="--")
for name, model in models.items():
    probabilities = model.predict_proba(X_test)
    is_correct = model.classes_[probabilities.argmax(axis=1)] == y_test
    top = probabilities.max(axis=1)
    bins = np.array_split(np.argsort(top), 10)
    right.plot([top[rows].mean() for rows in bins], [is_correct[rows].mean() for rows in bins], "o-", label=name)
right.set(xlabel="Probability of the predicted class", ylabel="Accuracy", title="Calibration on test rows")
right.legend()
plt.show()
