"""The transcription of the paper's tables, checked against what its text says of them."""

from margintree.datasets import DATA_SETS
from margintree.experiments import paper


def ranked(data_set, kernel):
    values = {m: paper.accuracy(m, data_set, kernel) for m in paper.PAPER_METHODS}
    return sorted((m for m, v in values.items() if v is not None), key=lambda m: -values[m][0])


def test_msm_is_best_in_nine_of_thirteen_settings_one_of_them_shared():
    best = [s for s in paper.SETTINGS if paper.accuracy("MSM", *s)[0] == paper.accuracy(ranked(*s)[0], *s)[0]]
    assert len(paper.SETTINGS) == 13
    assert len(best) == 9
    assert paper.accuracy("MSM", "sector", "linear")[0] == paper.accuracy("1vsR", "sector", "linear")[0]


def test_msm_is_second_to_fourth_in_the_other_settings():
    places = {s: ranked(*s).index("MSM") + 1 for s in paper.SETTINGS}
    others = {s: place for s, place in places.items() if place > 1 and s != ("sector", "linear")}
    # The paper says "top 2 or 3"; its own figures for usps say 4.
    assert others == {
        ("svmguide4", "rbf"): 2,
        ("svmguide4", "linear"): 3,
        ("vowel", "linear"): 2,
        ("usps", "linear"): 4,
    }


def test_only_j_bwg_with_the_gaussian_kernel_is_missing():
    for data_set, kernel in paper.SETTINGS:
        for method in paper.PAPER_METHODS:
            is_missing = method == "J-BWG" and kernel == "rbf"
            assert (paper.accuracy(method, data_set, kernel) is None) == is_missing
            assert (paper.seconds(method, data_set, kernel) is None) == is_missing


def test_the_settings_are_those_that_the_registry_names():
    assert set(paper.SETTINGS) == {(d.name, k) for d in DATA_SETS.values() if d.in_paper for k in d.kernels}
