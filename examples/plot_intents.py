"""
Intents of bank customers, from text
====================================

The data set banking77 consists of questions of bank customers with 77 intents. A pipeline of tf-idf and a margin tree
classifies them; the tree shows which intents are similar, and an explanation shows which words were decisive.

This example reads ``banking77.train.tsv.bz2`` and ``banking77.test.tsv.bz2`` from the directory given by
``MARGINTREE_DATA``. Each line has an intent, a tab and a question.
"""

# sphinx_gallery_thumbnail_number = 1

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
# Fit the pipeline. ``decide="rest"`` is the decider that suits texts; setting it makes the fit faster.
model = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2),
    MarginTreeClassifier(decide="rest", random_state=0),
).fit(texts, intents)
print(f"accuracy {model.score(test_texts, test_intents):.3f}")

# %%
# Explain the prediction for a question. The names of the features are taken from the pipeline.
explanation = explain(model, "My card has not arrived yet, how long does it take?")
print(explanation)
explanation.plot()
plt.show()

# %%
# Draw the tree. Nodes are shaded by their accuracy on the test questions.
plot_tree(model, X=test_texts, y=test_intents, max_leaves=None)
plt.show()
