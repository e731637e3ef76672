"""
Where the tree loses accuracy
=============================

A confusion matrix in the order of the tree shows which node caused an error: the last one that the paths to the true
class and to the predicted class have in common.
"""

# %%
# The greedy walk makes one decision per level, and nothing corrects the errors of a node, so that the errors are those
# of the tree itself.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from margintree import MarginTreeClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
greedy = MarginTreeClassifier(walk="greedy", random_state=0).fit(X_train, y_train)

# %%
# Groups of the tree are blocks on the diagonal. The number next to a node is the number of its errors.
import matplotlib.pyplot as plt

from margintree.inspection import ConfusionByTreeDisplay

display = ConfusionByTreeDisplay.from_estimator(greedy, X_test, y_test)
plt.show()

for record in display.worst_nodes(3):
    print(f"{record['n_errors']:3} errors between {record['left']} and {record['right']}")

# %%
# By default, the most probable paths nominate finalists, and one-vs-one or one-vs-rest machines decide between them.
# The tree is the same, but there are fewer errors, because the true class is often among the finalists.
default = MarginTreeClassifier(random_state=0).fit(X_train, y_train)
print(f"accuracy: greedy {greedy.score(X_test, y_test):.3f}, default {default.score(X_test, y_test):.3f}")
ConfusionByTreeDisplay.from_estimator(default, X_test, y_test)
plt.show()
