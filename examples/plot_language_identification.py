"""
Language identification with 527 languages
==========================================

Rows are paragraphs of the Universal Declaration of Human Rights, represented by counts of character n-grams. The tree
is learned from the paragraphs alone, without information about language families.

This example reads ``udhr_char3`` from the directory given by ``MARGINTREE_DATA``.
"""

# sphinx_gallery_thumbnail_number = 1

# %%
# Fit a tree to the training rows, with tf-idf weights.
import os

import matplotlib.pyplot as plt
import numpy as np

from margintree import MarginTreeClassifier
from margintree.datasets import fetch_udhr_char3, prepared
from margintree.inspection import ConfusionByTreeDisplay, plot_tree

if not os.environ.get("MARGINTREE_DATA"):
    raise SystemExit("This example needs udhr_char3: set MARGINTREE_DATA to the directory that holds its files.")

udhr = fetch_udhr_char3()
train, test = np.arange(udhr.n_train), np.arange(udhr.n_train, len(udhr.target))
X, y = prepared(udhr, train), udhr.target
model = MarginTreeClassifier(decide="rest", random_state=0).fit(X[train], y[train])
print(f"accuracy {model.score(X[test], y[test]):.3f}")
print(
    f"{model.n_evaluations(X[test]).mean():.0f} decision functions per prediction, of {len(model.classes_)} languages"
)

# %%
# Draw the confusion matrix. Groups of classes are collapsed to one row and one column, so that the errors within a
# group are on the diagonal.
display = ConfusionByTreeDisplay.from_estimator(model, X[test], y[test], class_names=udhr.target_names, max_leaves=30)
plt.show()
for record in display.worst_nodes(5):
    print(f"{record['n_errors']:3} errors between {', '.join(record['left'][:3])} and {', '.join(record['right'][:3])}")

# %%
# Draw the tree; the largest groups are expanded first.
plot_tree(model, class_names=udhr.target_names, max_leaves=50)
plt.show()
