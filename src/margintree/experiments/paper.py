"""What the paper reports: Tables 2 and 3 of Yang & Tsang; the sizes of Table 1 are in ``margintree.datasets``.

The paper is "Hierarchical Maximum Margin Learning for Multi-Class Classification". Data sets have the names of
``margintree.datasets``; the Gaussian kernel is "rbf".
"""

PAPER_METHODS = ("MSM", "I-BWG", "J-BWG", "FT", "CPT", "1vs1", "1vsR")
TREE_METHODS, FLAT_METHODS = PAPER_METHODS[:5], PAPER_METHODS[5:]

# Pairs of digits that the paper calls confusing (section 4.3): as printed, and if it printed LIBSVM's labels, which
# number the digits 0 to 9 from 1 to 10, with the last digit of 10 alone.
CONFUSABLE_DIGITS = {
    "as printed": ((1, 7), (4, 6), (8, 9), (9, 0), (8, 0)),
    "as LIBSVM's labels": ((0, 6), (3, 5), (7, 8), (8, 9), (7, 9)),
}

# Mean and standard deviation of the accuracy in %, in the order of PAPER_METHODS.
TABLE_2 = """
rbf    svmguide4  77.51±0.42 72.77±0.81          - 60.70±2.32 72.41±0.23 80.45±0.51 77.13±0.42
rbf    vowel      91.42±0.33 70.89±1.52          - 70.76±3.56 76.58±0.45 87.98±0.33 83.67±0.21
rbf    segment    92.57±0.22 89.56±1.44          - 89.20±1.44 90.48±0.10 92.31±0.42 91.29±0.43
rbf    satimage   87.45±0.61 72.29±1.10          - 60.07±2.89 69.64±0.45 61.75±0.23 81.99±0.33
rbf    usps       94.31±0.32 69.98±0.34          - 78.94±0.98 84.03±4.81 87.99±0.21 90.29±0.24
linear svmguide4  70.84±1.16 65.17±1.04 86.67±1.05 68.82±2.21 53.01±0.79 81.71±0.96 70.83±1.07
linear vowel      57.74±2.25 35.81±1.75 50.55±1.46 30.18±3.54 42.52±0.88 67.86±1.16 38.31±2.56
linear segment    93.22±0.08 69.04±0.04 83.18±0.06 74.31±4.87 84.25±0.06 92.14±0.05 92.13±0.02
linear satimage   78.81±0.14 68.22±0.10 70.34±0.11 63.90±2.26 68.32±0.15 77.78±0.09 75.42±0.09
linear usps       84.30±0.07 78.21±0.11 78.75±0.11 57.08±2.10 85.95±0.09 93.87±0.02 91.61±0.06
linear news20     82.31±0.10 70.09±0.12 70.18±0.10 42.29±4.26 65.63±0.11 77.52±0.07 78.65±0.08
linear sector     88.01±0.08 80.17±0.07 80.90±0.09 79.90±5.56 73.61±0.10 86.14±0.05 88.01±0.06
linear caltech101 39.78±0.03 13.84±0.32 13.31±0.20 16.33±0.30 24.53±0.09 36.64±0.10 39.50±0.20
"""
# Seconds to predict the test part, in the order of PAPER_METHODS.
TABLE_3 = """
rbf    svmguide4       0.03      0.06         -      0.04      0.04      0.22      0.08
rbf    vowel           0.06      0.09         -      0.08      0.08      1.45      0.22
rbf    segment         0.19      0.17         -      0.20      0.18      1.78      0.59
rbf    satimage        1.59      1.79         -      1.63      1.98      9.66      4.22
rbf    usps           27.49     26.50         -     28.33     27.96    205.24     56.94
linear svmguide4       0.03      0.03      0.02      0.03      0.03      0.03      0.13
linear vowel           0.05      0.05      0.05      0.05      0.05      0.09      0.31
linear segment         0.13      0.13      0.13      0.13      0.13      0.13      0.41
linear satimage        0.35      0.36      0.38      0.36      0.38      0.34      0.83
linear usps            0.87      0.88      0.88      0.87      0.88      2.61      1.70
linear news20        754.27    647.00    546.18    764.25    758.11  14914.00   1635.41
linear sector        291.31    285.52    201.28    288.22    271.75 181326.21   5060.37
linear caltech101      5.91      4.33      4.81      5.72      5.03    886.41     33.58
"""


def _entries(table: str) -> dict[tuple[str, str, str], tuple[float, ...]]:
    """Return the entries of a table by method, set and kernel, without the missing ones."""
    rows = [line.split() for line in table.strip().splitlines()]
    return {
        (method, data_set, kernel): tuple(map(float, entry.split("±")))
        for kernel, data_set, *entries in rows
        for method, entry in zip(PAPER_METHODS, entries, strict=True)
        if entry != "-"
    }


_ACCURACY, _SECONDS = _entries(TABLE_2), _entries(TABLE_3)
SETTINGS = tuple(dict.fromkeys((data_set, kernel) for _, data_set, kernel in _ACCURACY))


def accuracy(method: str, data_set: str, kernel: str) -> tuple[float, ...] | None:
    """Return mean and standard deviation of Table 2, or None where the paper has no figure."""
    return _ACCURACY.get((method, data_set, kernel))


def seconds(method: str, data_set: str, kernel: str) -> float | None:
    """Return the prediction time of Table 3, or None where the paper has no figure."""
    return _SECONDS.get((method, data_set, kernel), (None,))[0]
