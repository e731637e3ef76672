"""scikit-learn's own checks, for every estimator with every kernel and split."""

from dataclasses import dataclass

from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from margintree import (
    AllTogetherSVC,
    ConditionalProbabilityTreeClassifier,
    DecisionDAGClassifier,
    FilterTreeClassifier,
    LabelTreeClassifier,
    MarginTreeClassifier,
    OneVsOneSVC,
    OneVsRestSVC,
    OutputCodeSVC,
)
from margintree.splits import SPLITS


@dataclass(frozen=True)
class Laplacian:
    """A callable kernel whose name is the same in every process."""

    gamma: float = 0.1

    def __call__(self, A, B):
        return laplacian_kernel(A, B, gamma=self.gamma)


KERNELS = ["linear", "rbf", "poly", "precomputed", Laplacian()]

MODELS = [
    *(MarginTreeClassifier(kernel, random_state=0) for kernel in KERNELS),
    *(
        MarginTreeClassifier(kernel, split=split, random_state=0)
        for kernel in ("linear", "rbf")
        for split in SPLITS
        if split != "best_first"
    ),
    *(
        estimator(kernel, random_state=0)
        for estimator in (OneVsRestSVC, OneVsOneSVC, DecisionDAGClassifier, FilterTreeClassifier)
        for kernel in KERNELS
    ),
    *(LabelTreeClassifier(kernel, random_state=0) for kernel in KERNELS),
    LabelTreeClassifier(joint=True, random_state=0),
    ConditionalProbabilityTreeClassifier(random_state=0),
    *(ConditionalProbabilityTreeClassifier(kernel, node="svm", random_state=0) for kernel in KERNELS),
    *(AllTogetherSVC(loss, random_state=0) for loss in ("crammer_singer", "weston_watkins")),
    *(OutputCodeSVC(kernel, random_state=0) for kernel in KERNELS),
    *(
        OutputCodeSVC(code=code, decoding=decoding, random_state=0)
        for code in ("dense", "sparse", "one_vs_one", "one_vs_rest")
        for decoding in ("hamming", "attenuated", "loss_weighted")
    ),
]


@parametrize_with_checks(MODELS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
