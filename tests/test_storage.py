"""Files are replaced whole or not at all."""

import os
import stat
import sys
from pathlib import Path

import pytest

from margintree.storage import check_writable, replacing


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


def test_a_link_stays_a_link_to_the_new_content(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    with replacing(tmp_path / "link") as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_neither_directories_nor_pipes_are_replaced(tmp_path):
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name, message in (("directory", "Is a directory"), ("pipe", "no regular file"), ("link", "no regular file")):
        with pytest.raises(OSError, match=message), replacing(tmp_path / name):
            pytest.fail("something was about to be written")
        with pytest.raises(OSError, match=message):
            check_writable(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["directory", "link", "pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_what_cannot_be_written_later_is_found_out_before(tmp_path):
    check_writable(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match=r"There is no directory .*Create it"):
        check_writable(tmp_path / "nowhere" / "file")
    # Nobody makes files there, not even root.
    with pytest.raises(OSError, match="no file can be made in this directory"):
        check_writable(Path("/proc/self/fd/file") if sys.platform == "linux" else Path("/file"))
