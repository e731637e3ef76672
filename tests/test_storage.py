"""Files are replaced whole or not at all."""

import pytest

from margintree.storage import replacing


def write_half(path, error):
    with replacing(path) as unfinished:
        unfinished.write_text("half")
        raise error


def test_an_error_or_an_interrupt_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            write_half(path, error)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


def test_the_new_file_takes_the_place_of_the_old_one_only_at_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as unfinished:
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
