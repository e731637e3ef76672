import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from margintree.datasets import DATA_SETS
from margintree.datasets.caltech_features import BACKGROUND, DenseSiftWords, dense_sift, image_files, store_features
from margintree.datasets.data_files import DataError
from margintree.datasets.fetchers import fetcher
from margintree.datasets.registry import Form

cv2 = pytest.importorskip("cv2", reason="needs OpenCV: pip install 'margintree[caltech]'")

CLASSES = ("Blobs", "checks", "stripes")


def texture(kind, seed, height=120, width=160):
    """Return an image with the texture of a class, at a random phase and contrast."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width] + random.integers(0, 20, 2)[:, None, None]
    if kind == "stripes":
        pattern = np.sin(x / 3)
    elif kind == "checks":
        pattern = np.sign(np.sin(x / 5) * np.sin(y / 5))
    else:
        pattern = cv2.GaussianBlur(random.normal(size=(height, width)), (0, 0), 4.0)
        pattern /= np.abs(pattern).max()
    image = 128 + random.uniform(60, 110) * pattern + random.normal(0, 3, (height, width))
    return np.clip(image, 0, 255).astype(np.uint8)


def write(path, image):
    path.parent.mkdir(parents=True, exist_ok=True)
    done, content = cv2.imencode(path.suffix, image)
    assert done
    path.write_bytes(content.tobytes())


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Return a directory with eight images of each class, and a folder of background."""
    root = tmp_path_factory.mktemp("images")
    for k, kind in enumerate(CLASSES):
        for j in range(8):
            write(root / kind / f"image_{j:04}.jpg", texture(kind.lower(), 100 * k + j))
    write(root / BACKGROUND / "image_0001.jpg", texture("stripes", 7))
    (root / "checks" / "notes.txt").write_text("not an image")
    return root


@pytest.fixture(scope="module")
def words():
    return DenseSiftWords(20, longest_side=160, descriptors_per_image=60, random_state=0)


def test_files_come_by_class_without_background_and_other_files(images):
    files, target, names = image_files(images)
    assert names == list(CLASSES)
    np.testing.assert_array_equal(target, np.repeat([0, 1, 2], 8))
    assert [file.parent.name for file in files] == np.repeat(CLASSES, 8).tolist()


def test_descriptors_lie_on_the_grid_and_inside_the_image():
    # Centres at 8, 16, ..., with 8 pixels on every side: 24 rows and 36 columns in 200 x 300.
    assert dense_sift(texture("blobs", 0, 200, 300)).shape == (24 * 36, 128)
    assert dense_sift(texture("blobs", 0, 16, 23)).shape == (1, 128)
    assert dense_sift(texture("blobs", 0, 64, 64), step=16, patch_size=32).shape == (9, 128)


def test_a_descriptor_sees_its_patch_and_little_else():
    # A bright square inside one patch of the grid; a descriptor reaches half a bin beyond its patch, and the image
    # is smoothed, so patches further off than two steps must be empty.
    image = np.zeros((128, 128), dtype=np.uint8)
    image[60:68, 60:68] = 255
    seen = np.abs(dense_sift(image)).sum(axis=1).reshape(15, 15) > 0
    rows, columns = np.nonzero(seen)
    assert seen[7, 7]
    assert {rows.min(), columns.min()} == {5}
    assert {rows.max(), columns.max()} == {9}


def test_descriptors_move_with_the_image():
    image = texture("blobs", 1, 200, 200)
    grid = dense_sift(image).reshape(24, 24, 128)
    moved = dense_sift(np.ascontiguousarray(image[8:, 16:])).reshape(23, 22, 128)
    # Away from the border, which is smoothed differently.
    np.testing.assert_allclose(moved[3:-3, 3:-3], grid[4:-3, 5:-3], atol=2.0)


@pytest.mark.parametrize(("height", "width"), [(100, 50), (600, 1200)], ids=["small", "large"])
def test_the_longest_side_is_scaled_up_or_down(tmp_path, height, width):
    write(tmp_path / "image.png", texture("blobs", 2, height, width))
    n_patches = len(DenseSiftWords().descriptors(tmp_path / "image.png"))
    assert n_patches == ((150 - 16) // 8 + 1) * ((300 - 16) // 8 + 1)


def test_every_patch_of_an_image_is_counted_as_one_word(images, words):
    files = image_files(images)[0][:3]
    counts = words.fit(image_files(images)[0]).transform(files)
    assert counts.shape == (3, 20)
    np.testing.assert_array_equal(counts.sum(axis=1), [len(words.descriptors(file)) for file in files])
    np.testing.assert_array_equal(counts, np.rint(counts))


def test_the_same_seed_gives_the_same_words(images, words):
    files = image_files(images)[0]
    np.testing.assert_array_equal(words.fit_transform(files), words.fit_transform(files))


def test_words_tell_textures_apart(images, words):
    files, target, _ = image_files(images)
    known = np.arange(len(files)) % 2 == 0
    X = normalize(np.sqrt(words.fit([f for f, k in zip(files, known, strict=True) if k]).transform(files)))
    assert LinearSVC(random_state=0).fit(X[known], target[known]).score(X[~known], target[~known]) >= 0.9


def test_stored_features_are_what_the_fetcher_finds(images, tmp_path):
    small = replace(
        DATA_SETS["caltech101"],
        n_features=20,
        labels=(0, 1, 2),
        forms=(Form("caltech3_bow20", 24, 0, 20),),
    )
    path = store_features(images, data_home=tmp_path, data_set=small)
    assert path == tmp_path / "margintree" / "caltech3_bow20.bz2"
    bunch = fetcher(small)(data_home=tmp_path)
    files, target, _ = image_files(images)
    np.testing.assert_array_equal(bunch.target, target)
    np.testing.assert_array_equal(bunch.data, DenseSiftWords(20, random_state=0).fit_transform(files))
    assert bunch.target_names == list(CLASSES)


def test_a_directory_that_is_not_caltech_101_is_refused_before_the_work(images, tmp_path):
    with pytest.raises(DataError, match="holds 24 images of 3 classes; caltech101 has 8677 of 101"):
        store_features(images, data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_image_is_named(tmp_path):
    for content in (b"not an image", b""):
        (tmp_path / "broken.jpg").write_bytes(content)
        with pytest.raises(ValueError, match=r"broken\.jpg is not an image"):
            DenseSiftWords().descriptors(tmp_path / "broken.jpg")


def test_an_image_too_narrow_for_a_patch_is_named(tmp_path):
    write(tmp_path / "line.png", texture("blobs", 3, 10, 300))
    with pytest.raises(ValueError, match=r"line\.png has 300 x 10 pixels after scaling, less than a patch of 16"):
        DenseSiftWords().descriptors(tmp_path / "line.png")


def test_too_few_descriptors_for_the_codebook_are_told(images):
    files = image_files(images)[0][:2]
    with pytest.raises(ValueError, match="n_words=1000 needs at least as many descriptors; 2 images gave 200"):
        DenseSiftWords().fit(files)


def test_a_directory_without_classes_is_told(tmp_path):
    with pytest.raises(ValueError, match="has no folder with images"):
        image_files(tmp_path)
    with pytest.raises(NotADirectoryError, match="a folder for each class"):
        image_files(tmp_path / "nowhere")


def test_without_opencv_the_error_says_what_to_install(images, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match=r"pip install 'margintree\[caltech\]'"):
        store_features(images, data_home=tmp_path)
