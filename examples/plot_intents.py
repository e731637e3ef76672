"""
Intents of bank customers, from text
====================================

banking77 has questions of bank customers with 77 intents. A pipeline of tf-idf and a margin tree classifies the text;
the tree shows which intents are alike, and an explanation shows which words decided.

This example reads ``banking77.train.tsv.bz2`` and ``banking77.test.tsv.bz2`` from the directory that
``MARGINTREE_DATA`` names: one question per line, its intent and a tab before it.
"""

# sphinx_gallery_thumbnail_number = -1

# %%
# Read the questions.
import bz2
import os
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from margintree import MarginTreeClassifier
from margintree.inspection import explain, plot_tree

if not os.environ.get("MARGINTREE_DATA"):
    raise SystemExit("This example needs banking77: set MARGINTREE_DATA to the directory that holds its files.")


def questions(part):
    """Return the texts and intents of a part."""
    path = Path(os.environ["MARGINTREE_DATA"]) / f"banking77.{part}.tsv.bz2"
    lines = bz2.decompress(path.read_bytes()).decode("utf-8").splitlines()
    intents, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return list(texts), list(intents)


texts, intents = questions("train")
test_texts, test_intents = questions("test")

# %%
# Fit. ``decide="rest"`` names the decider that suits texts, which makes the fit faster.
model = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2),
    MarginTreeClassifier(decide="rest", random_state=0),
).fit(texts, intents)
print(f"accuracy {model.score(test_texts, test_intents):.3f}")

# %%
# Why does a question have its intent? The pipeline knows the words.
explanation = explain(model, "My card has not arrived yet, how long does it take?")
print(explanation)
explanation.plot()
plt.show()

# %%
# The intents, shaded by the accuracy of each node on the test questions.
plot_tree(model, X=test_texts, y=test_intents, max_leaves=None)
plt.show()
