"""Files are replaced whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
import time
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
    for name, message in (
        ("directory", "Is a directory"),
        ("pipe", "not a regular file"),
        ("link", "not a regular file"),
    ):
        with pytest.raises(OSError, match=message), replacing(tmp_path / name):
            pytest.fail("something was about to be written")
        with pytest.raises(OSError, match=message):
            check_writable(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["directory", "link", "pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_what_cannot_be_written_later_is_found_out_before(tmp_path):
    check_writable(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match=r"The directory .* does not exist\. Create it"):
        check_writable(tmp_path / "nowhere" / "file")
    # Nobody makes files there, not even root.
    with pytest.raises(OSError, match="no file can be made in this directory"):
        check_writable(Path("/proc/self/fd/file") if sys.platform == "linux" else Path("/file"))


def test_the_new_file_has_the_mode_of_the_one_it_replaces(tmp_path):
    path = tmp_path / "file"
    path.write_text("secret")
    for mode in (0o600, 0o640):
        path.chmod(mode)
        with replacing(path) as unfinished:
            assert stat.S_IMODE(unfinished.stat().st_mode) == mode
            unfinished.write_text("new secret")
        assert stat.S_IMODE(path.stat().st_mode) == mode


WRITE_AND_WAIT = """
import sys, time
from pathlib import Path
from margintree.storage import replacing
with replacing(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def waiting_writer(path):
    process = subprocess.Popen([sys.executable, "-c", WRITE_AND_WAIT, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="the files of killed processes are told by POSIX locks")
def test_what_killed_writers_left_is_removed_and_what_living_ones_write_is_not(tmp_path):
    path, other = tmp_path / "file", tmp_path / "file2"
    killed, killed_at_other, living = waiting_writer(path), waiting_writer(other), waiting_writer(path)
    try:
        for process in (killed, killed_at_other):
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert len(list(tmp_path.glob(".unfinished-*-file"))) == 2
        with replacing(path) as unfinished:
            unfinished.write_text("new")
        assert path.read_text() == "new"
        assert len(list(tmp_path.glob(".unfinished-*-file"))) == 1
        assert len(list(tmp_path.glob(".unfinished-*-file2"))) == 1
    finally:
        living.kill()
        living.wait()


def test_an_empty_file_that_was_made_just_now_is_not_removed(tmp_path):
    fresh, old = (tmp_path / f".unfinished-{digit * 16}-file" for digit in "12")
    for path in (fresh, old):
        path.touch()
    os.utime(old, (time.time() - 60, time.time() - 60))
    with replacing(tmp_path / "file") as unfinished:
        unfinished.write_text("new")
    assert fresh.exists()
    assert not old.exists()
