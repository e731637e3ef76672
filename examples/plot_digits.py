"""
The class tree of handwritten digits
====================================

This example learns a tree over the ten digits from 8 x 8 images, and draws it with the mean image of each class at its
leaf. Each node divides its classes into the two groups that a support vector machine separates best.
"""

# %%
# Fit a tree to the digits of scikit-learn. This takes about a second; the first fit on a machine takes longer, because
# code is compiled.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from margintree import MarginTreeClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
model = MarginTreeClassifier(C=10, random_state=0).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f}")
print(f"{model.n_evaluations(X_test).mean():.1f} decision functions per prediction; one-vs-one needs {10 * 9 // 2}")

# %%
# Draw the tree. Nodes are shaded by the share of test rows that they send to the correct side.
import matplotlib.pyplot as plt
import numpy as np

from margintree.inspection import plot_tree

means = np.array([X_train[y_train == digit].mean(axis=0).reshape(8, 8) for digit in model.classes_])
plot_tree(model, thumbnails=means, X=X_test, y=y_test)
plt.show()

# %%
# Explain the prediction that the model is least certain of: the path of the row, the classes that were given up at each
# node, and how the decider ranked the finalists.
row = model.predict_proba(X_test).max(axis=1).argmin()
explanation = model.explain(X_test[row])
print(f"the image shows a {y_test[row]}")
explanation.plot()
plt.show()
