"""Lists of the best, and logarithms of probabilities."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_expit

from margintree.compiled import walk

# Few different scores, so that many are equal.
scored_items = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from([-np.inf, -3.0, -1.0, -1e-300, 0.0])),
    max_size=30,
    unique_by=lambda pair: pair[0],
)


@given(scored_items, st.integers(1, 12), st.integers(0, 3))
def test_a_list_keeps_the_best_and_orders_equals_by_item(pairs, size, base):
    items, scores = np.full(base + size + 2, -7), np.full(base + size + 2, np.nan)
    n_kept = 0
    for item, score in pairs:
        n_kept = walk.keep(items, scores, base, size, n_kept, item, score)
    best = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:size]
    assert n_kept == len(best)
    assert list(zip(items[base : base + n_kept].tolist(), scores[base : base + n_kept].tolist(), strict=True)) == best
    # Nothing outside of the list's room is touched.
    assert (items[:base] == -7).all()
    assert (items[base + size :] == -7).all()


@given(scored_items, st.integers(1, 12), st.randoms())
def test_the_order_of_insertion_does_not_matter(pairs, size, random):
    lists = []
    for given_pairs in (pairs, random.sample(pairs, len(pairs))):
        items, scores, n_kept = np.full(size, -1), np.zeros(size), 0
        for item, score in given_pairs:
            n_kept = walk.keep(items, scores, 0, size, n_kept, item, score)
        lists.append((items.tolist(), scores.tolist()))
    assert lists[0] == lists[1]


@given(st.floats(-1e6, 1e6))
def test_log_probabilities_are_accurate_at_both_ends(log_odds):
    np.testing.assert_allclose(walk.log_probability(log_odds), log_expit(log_odds), rtol=1e-14)
