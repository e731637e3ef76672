"""
Intents of bank customers, from embeddings
==========================================

The data set banking77 consists of questions of bank customers with 77 intents. An embedding model maps each question to
a short dense vector, and a margin tree classifies the vectors. It is compared with scikit-learn's logistic regression;
:ref:`sphx_glr_auto_examples_plot_intents.py` uses tf-idf instead of embeddings.

This example reads ``banking77.train.tsv.bz2`` and ``banking77.test.tsv.bz2`` from the directory given by
``MARGINTREE_DATA``, and uses the small embedding model that is included in the package wordllama.
"""

# sphinx_gallery_thumbnail_number = 1

# %%
# Read the questions and embed them: 256 numbers each, scaled to unit length.
import bz2
import os
import time
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from margintree import MarginTreeClassifier
from margintree.inspection import plot_tree

if not os.environ.get("MARGINTREE_DATA"):
    raise SystemExit("This example needs banking77: set MARGINTREE_DATA to the directory that holds its files.")
if find_spec("wordllama") is None:
    raise SystemExit("This example needs an embedding model: pip install wordllama")

import wordllama

embedder = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent)


def questions(part):
    """Return the embeddings and intents of a part."""
    path = Path(os.environ["MARGINTREE_DATA"]) / f"banking77.{part}.tsv.bz2"
    lines = bz2.decompress(path.read_bytes()).decode("utf-8").splitlines()
    intents, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return embedder.embed(list(texts), norm=True), np.array(intents)


X, y = questions("train")
X_test, y_test = questions("test")
print(X.shape, X.dtype)

# %%
# Fit a linear tree, a tree with the Gaussian kernel, and logistic regression. With hundreds of
# classes or more, prefer the linear kernel.
models = {
    "margin tree": MarginTreeClassifier(random_state=0),
    "margin tree, rbf": MarginTreeClassifier("rbf", C=10, random_state=0),
    "logistic regression": LogisticRegression(C=10, max_iter=200),
}
accuracy, seconds = {}, {}
for name, model in models.items():
    began = time.perf_counter()
    accuracy[name] = model.fit(X, y).score(X_test, y_test)
    seconds[name] = time.perf_counter() - began
    print(f"{name}: accuracy {accuracy[name]:.3f}, fitted and tested in {seconds[name]:.1f} s")

# %%
# Probabilities show which questions should be passed on to a person. Plot the accuracy against the share of questions
# that are answered automatically.
for name, model in models.items():
    probabilities = model.predict_proba(X_test)
    order = np.argsort(-probabilities.max(axis=1))
    is_right = model.classes_[probabilities.argmax(axis=1)][order] == y_test[order]
    answered = np.arange(1, len(y_test) + 1)
    plt.plot(answered / len(y_test), np.cumsum(is_right) / answered, label=name)
plt.xlim(0.2, 1.0)
plt.ylim(0.88, 1.005)
plt.xlabel("share of questions answered, the most probable first")
plt.ylabel("accuracy on these")
plt.legend()
plt.show()

# %%
# Draw the tree over the intents. Nodes are shaded by their accuracy on the test questions.
plot_tree(models["margin tree"], X=X_test, y=y_test, max_leaves=None)
plt.show()
