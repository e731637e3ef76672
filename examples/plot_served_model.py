"""
Serving a model from a mapped file
==================================

A model file is memory-mapped, so that even a large file loads within milliseconds, and processes on one machine share
its pages. ``single_instance()`` then classifies one row at a time without the overhead of input validation.
"""

# %%
# Train and save a model. The file contains arrays of numbers and a JSON header, but no pickle and no code.
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, ScalarFormatter
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import margintree

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
model = margintree.MarginTreeClassifier(random_state=0).fit(X_train, y_train)

directory = tempfile.TemporaryDirectory()  # removed when Python exits
path = Path(directory.name) / "digits.margintree"
margintree.save_model(model, path)
print(f"{path.stat().st_size / 1000:.0f} kB")

# %%
# Load the model, as a server would. Its predictions are identical, bit for bit.
start = time.perf_counter()
served = margintree.load_model(path)
print(f"loaded in {1000 * (time.perf_counter() - start):.1f} ms")
np.testing.assert_array_equal(served.predict_proba(X_test), model.predict_proba(X_test))

# %%
# Measure the latency of single rows. ``predict`` spends most of its time on input validation; ``single_instance()``
# checks only the width of the row and that its values are finite, and can be shared between threads.
single = served.single_instance()
single.predict(X_test[0])  # the first call compiles, or loads compiled code


def microseconds(predict, rows):
    """Return the time of each call."""
    times = []
    for row in rows:
        start = time.perf_counter()
        predict(row)
        times.append(1e6 * (time.perf_counter() - start))
    return np.array(times)


times = {
    "predict(x[None])": microseconds(lambda row: served.predict(row[None]), X_test),
    "single_instance().predict(x)": microseconds(single.predict, X_test),
}

figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.boxplot(list(times.values()), orientation="horizontal", whis=(5, 95), showfliers=False, tick_labels=list(times))
ax.set_xscale("log")
ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
ax.xaxis.set_major_formatter(ScalarFormatter())
ax.set(xlabel="Microseconds for one row (box: quartiles, whiskers: 5 % and 95 %)", title="Latency of one prediction")
plt.show()
