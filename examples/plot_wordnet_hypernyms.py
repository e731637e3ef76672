"""
A tree over 1,482 WordNet classes, and WordNet's own
====================================================

Each row has the words of a noun of WordNet and of its definition; the class is the hypernym of the noun, the more
general term directly above it. The tree is learned from these words alone, and is compared with WordNet's own hierarchy
of the classes.

This example reads ``wordnet_hypernyms`` from the directory given by ``MARGINTREE_DATA``.
"""

# sphinx_gallery_thumbnail_number = -1

# %%
# Load the rows, and the reference hierarchy as nested lists of labels.
import bz2
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from margintree import MarginTreeClassifier
from margintree.datasets import fetch_wordnet_hypernyms, prepared
from margintree.inspection import compare_taxonomies, nested_from_paths, plot_tree

if not os.environ.get("MARGINTREE_DATA"):
    raise SystemExit("This example needs wordnet_hypernyms: set MARGINTREE_DATA to the directory that holds its files.")

wordnet = fetch_wordnet_hypernyms()
n_train = wordnet.n_train
X = prepared(wordnet, np.arange(n_train))  # tf-idf, fitted on the training rows
y = wordnet.target
paths = Path(os.environ["MARGINTREE_DATA"]) / "wordnet_hypernyms.taxonomy.txt.bz2"
reference = nested_from_paths(bz2.decompress(paths.read_bytes()).decode().split(), labels=np.unique(y).tolist())

# %%
# Fit three trees: learned, from balanced 2-means of the class means, and random. With the greedy walk, accuracy depends
# on the tree alone.
trees = {"learned": "best_first", "centroid": "centroid", "random": "random"}
models, agreement, accuracy = {}, {}, {}
for name, split in trees.items():
    model = MarginTreeClassifier(split=split, walk="greedy", calibration_folds=0, random_state=0)
    models[name] = model.fit(X[:n_train], y[:n_train])
    agreement[name] = compare_taxonomies(model, reference).triplet_agreement
    accuracy[name] = model.score(X[n_train:], y[n_train:])
    print(f"{name:10} triplet agreement {agreement[name]:.3f}, accuracy {accuracy[name]:.3f}")

# %%
# Two trees agree on a triplet of classes if the same two of them are closest. A random tree agrees with WordNet on a
# third of the triplets (dashed line). The learned tree recovers a small part of WordNet's hierarchy, about as much as
# 2-means does.
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for ax, values, label in [
    (axes[0], agreement, "Triplet agreement with WordNet"),
    (axes[1], accuracy, "Accuracy, greedy walk"),
]:
    ax.bar_label(ax.bar(list(values), list(values.values()), color=["C0", "C1", "C7"]), fmt="%.3f")
    ax.set_title(label)
    ax.margins(y=0.15)
axes[0].axhline(1 / 3, color="black", linewidth=1, linestyle="--")
plt.show()

# %%
# The whole tree does not fit on a page. With ``max_leaves``, the largest groups are expanded first, and the others are
# collapsed. Several synsets may have the same name; only these keep their number.
short = [name.rsplit(".", 1)[0].replace("_", " ") for name in wordnet.target_names]
names = [a if short.count(a) == 1 else b for a, b in zip(short, wordnet.target_names, strict=True)]
plot_tree(models["learned"], class_names=names, max_leaves=40)
plt.show()
