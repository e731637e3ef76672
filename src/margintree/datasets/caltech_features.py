"""Bags of visual words, computed from images as in section 4.1 of the paper for Caltech-101.

Each image is scaled so that its longest side has 300 pixels, SIFT descriptors (Lowe, 2004) are computed for patches of
16 pixels on a grid with step 8, k-means clusters the descriptors of all images into 1000 words, and an image is
represented by the counts of its words. OpenCV, which computes the descriptors, is an extra:
``pip install 'margintree[caltech]'``.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import get_data_home
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from margintree.datasets import data_files
from margintree.datasets.registry import DATA_SETS, DataSet

BACKGROUND = "BACKGROUND_Google"
_ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff"}
# OpenCV's descriptor has 4 x 4 bins, each 3 * size / 2 pixels wide.
_PATCH_OF_KEYPOINT = 6.0

Image = npt.NDArray[np.uint8]
Descriptors = npt.NDArray[np.float32]


class DenseSiftWords(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Counts of visual words on a grid.

    Parameters
    ----------
    n_words : int, default=1000
        Size of the codebook.
    step : int, default=8
        Pixels between two neighbours of the grid.
    patch_size : int, default=16
        Side of a patch in pixels.
    longest_side : int, default=300
        Pixels of the longest side of an image after scaling.
    descriptors_per_image : int, default=100
        Number of descriptors per image, drawn at random, from which the codebook is learned. All descriptors of
        Caltech-101 would take 5 GB.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw and of k-means.

    Attributes
    ----------
    codebook_ : MiniBatchKMeans
        The fitted clustering; a word is a cluster.

    Examples
    --------
    >>> from margintree.datasets.caltech_features import DenseSiftWords
    >>> words = DenseSiftWords(n_words=100).fit_transform(["cat.jpg", "dog.jpg"])  # doctest: +SKIP
    """

    def __init__(
        self,
        n_words: int = 1000,
        *,
        step: int = 8,
        patch_size: int = 16,
        longest_side: int = 300,
        descriptors_per_image: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_words = n_words
        self.step = step
        self.patch_size = patch_size
        self.longest_side = longest_side
        self.descriptors_per_image = descriptors_per_image
        self.random_state = random_state

    def fit(self, X: Iterable[str | os.PathLike[str]], y: Any = None) -> Self:
        """Learn the codebook from image files."""
        random = check_random_state(self.random_state)
        drawn = []
        for file in X:
            descriptors = self.descriptors(file)
            chosen = random.permutation(len(descriptors))[: self.descriptors_per_image]
            drawn.append(descriptors[chosen])
        n_drawn = sum(map(len, drawn))
        if n_drawn < self.n_words:
            raise ValueError(
                f"A codebook of n_words={self.n_words} needs at least as many descriptors; {len(drawn)} images gave "
                f"{n_drawn}. Use fewer words, more images or a larger descriptors_per_image."
            )
        codebook = MiniBatchKMeans(self.n_words, batch_size=10 * self.n_words, n_init=1, random_state=random)
        self.codebook_ = codebook.fit(np.concatenate(drawn))
        return self

    def transform(self, X: Iterable[str | os.PathLike[str]]) -> npt.NDArray[np.float64]:
        """Return the counts of words, one row per image file."""
        check_is_fitted(self)
        counts = [np.bincount(self.codebook_.predict(self.descriptors(file)), minlength=self.n_words) for file in X]
        return np.array(counts, dtype=np.float64).reshape(-1, self.n_words)

    def descriptors(self, file: str | os.PathLike[str]) -> Descriptors:
        """Return the SIFT descriptors of an image file, one row per patch, from left to right and top to bottom."""
        image = _read(Path(file), self.longest_side)
        return dense_sift(image, step=self.step, patch_size=self.patch_size, name=str(file))


def dense_sift(image: Image, *, step: int = 8, patch_size: int = 16, name: str = "The image") -> Descriptors:
    """Return upright SIFT descriptors of all patches of a grid that lie inside a grey image."""
    height, width = image.shape
    if min(height, width) < patch_size:
        raise ValueError(f"{name} has {width} x {height} pixels after scaling, less than a patch of {patch_size}.")
    cv2 = _opencv()
    half = patch_size / 2
    rows, columns = np.arange(half, height - half + 1, step), np.arange(half, width - half + 1, step)
    # Patches of even size have their centre between two pixels.
    centres = [(float(x) - 0.5, float(y) - 0.5) for y in rows for x in columns]
    keypoints = [cv2.KeyPoint(x, y, patch_size / _PATCH_OF_KEYPOINT, 0.0) for x, y in centres]
    _, descriptors = cv2.SIFT_create().compute(image, keypoints)
    return np.asarray(descriptors, dtype=np.float32)


def image_files(directory: str | os.PathLike[str]) -> tuple[list[Path], npt.NDArray[np.int64], list[str]]:
    """Return the image files below a directory with one folder per class, their classes, and the class names.

    The folder of background images is left out, as in the paper.
    """
    root = Path(directory)
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a directory; pass the one that has a folder for each class.")
    folders = sorted((f for f in root.iterdir() if f.is_dir() and f.name != BACKGROUND), key=lambda f: f.name.lower())
    files = [sorted(f for f in folder.iterdir() if f.suffix.lower() in _ENDINGS) for folder in folders]
    filled = [(folder, found) for folder, found in zip(folders, files, strict=True) if found]
    if not filled:
        raise ValueError(f"{root} has no folder with images; pass the directory with one folder for each class.")
    target = np.repeat(np.arange(len(filled)), [len(found) for _, found in filled])
    return [file for _, found in filled for file in found], target, [folder.name for folder, _ in filled]


def store_features(
    directory: str | os.PathLike[str],
    *,
    data_home: str | os.PathLike[str] | None = None,
    random_state: Any = 0,
    data_set: DataSet = DATA_SETS["caltech101"],
) -> Path:
    """Compute the features of Caltech-101 from its images, and store them where ``fetch_caltech101`` finds them.

    Parameters
    ----------
    directory : str or path-like
        The unpacked images, ``101_ObjectCategories``, with one folder for each class.
    data_home : str or path-like, default=None
        Where scikit-learn keeps its data.
    random_state : int, RandomState instance or None, default=0
        Seed of the codebook.
    data_set : DataSet
        The data set to store them as; its sizes are checked first.

    Returns
    -------
    Path
        The file of features.

    Examples
    --------
    >>> from margintree.datasets.caltech_features import store_features
    >>> store_features("101_ObjectCategories")  # doctest: +SKIP
    """
    _opencv()
    files, target, names = image_files(directory)
    form = data_set.forms[0]
    if len(files) != form.n_train or len(names) != data_set.n_classes:
        raise data_files.DataError(
            f"{directory} holds {len(files)} images of {len(names)} classes; {data_set.name} has {form.n_train} of "
            f"{data_set.n_classes}. Pass the directory of the whole, unchanged set."
        )
    counts = DenseSiftWords(data_set.n_features, random_state=random_state).fit(files).transform(files)
    cache = Path(get_data_home(data_home)) / "margintree"
    data_files.store_class_names(form, names, cache)
    path = data_files.paths(form, cache)[0]
    data_files.store_part(data_set, form, form.n_train, counts, target, path, str(directory))
    return path


def _read(file: Path, longest_side: int) -> Image:
    """Return an image in greyscale, scaled so that its longest side has the given number of pixels."""
    cv2 = _opencv()
    # Decoded from memory, because OpenCV cannot open every name on every system.
    content = np.fromfile(file, dtype=np.uint8)
    image = cv2.imdecode(content, cv2.IMREAD_GRAYSCALE) if content.size else None
    if image is None:
        raise ValueError(f"{file} is not an image that OpenCV can read.")
    height, width = image.shape
    factor = longest_side / max(height, width)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR))


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise ImportError(
            "Features of images need OpenCV, which is not installed: pip install 'margintree[caltech]'."
        ) from error
    return cv2
