"""
Topics of newsgroup messages, from text
=======================================

The 20 newsgroups data set has messages on 20 topics, from atheism to hockey. A pipeline of tf-idf and a margin tree
classifies them; the tree groups similar topics, and an explanation shows which words were decisive.

scikit-learn downloads the messages (14 MB) when this example is run for the first time.
"""

# sphinx_gallery_thumbnail_number = -1

# %%
# Load the messages without headers, footers and quotes, which reveal the newsgroup.
import matplotlib.pyplot as plt
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from margintree import MarginTreeClassifier
from margintree.inspection import ConfusionByTreeDisplay, explain, plot_tree

try:
    train, test = (
        fetch_20newsgroups(subset=part, remove=("headers", "footers", "quotes")) for part in ("train", "test")
    )
except OSError as error:
    raise SystemExit(f"This example needs the 20 newsgroups, and scikit-learn cannot download them: {error}") from None
names = train.target_names

# %%
# Fit the pipeline. ``decide="rest"`` is the decider that suits texts; setting it makes the fit faster.
model = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2, max_df=0.5),
    MarginTreeClassifier(decide="rest", random_state=0),
).fit(train.data, train.target)
print(f"accuracy {model.score(test.data, test.target):.3f}")

# %%
# Explain the prediction for a message. The names of the features are taken from the pipeline.
explanation = explain(
    model, "The goalie stopped the puck, but the team lost the playoff game in overtime.", class_names=names
)
print(explanation)
explanation.plot()
plt.show()

# %%
# Draw the confusion matrix. The number at a node is the number of messages that take the wrong side there.
ConfusionByTreeDisplay.from_estimator(model, test.data, test.target, class_names=names)
plt.show()

# %%
# Draw the tree. Nodes are shaded by their accuracy on the test messages.
plot_tree(model, class_names=names, X=test.data, y=test.target)
plt.show()
