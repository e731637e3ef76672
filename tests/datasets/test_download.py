import bz2
import os
import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from margintree.datasets.download import DownloadError, download

CONTENT = b"1 1:0.5 2:0.25\n" * 1000


def accept(path):
    """Check nothing."""


def fetched(site, path, name="rows.txt", check=accept, n_retries=0):
    download(f"{site.address}{name}", path, check=check, n_retries=n_retries, delay=0.0)


@pytest.fixture
def rows_site(site):
    site.files |= {"/rows.txt": CONTENT, "/rows.bz2": bz2.compress(CONTENT)}
    return site


@pytest.mark.parametrize("name", ["rows.txt", "rows.bz2"])
def test_a_file_is_stored_as_bz2_whether_it_comes_plain_or_compressed(rows_site, tmp_path, name):
    fetched(rows_site, tmp_path / "cache" / "rows.bz2", name)
    assert bz2.decompress((tmp_path / "cache" / "rows.bz2").read_bytes()) == CONTENT


def test_a_stored_file_may_be_read_by_others_as_the_umask_says(rows_site, tmp_path):
    fetched(rows_site, tmp_path / "rows.bz2")
    (tmp_path / "plain").touch()
    assert (tmp_path / "rows.bz2").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("fault", ["truncated", "reset", 503])
def test_a_fault_that_passes_is_retried(rows_site, tmp_path, fault):
    rows_site.faults += [fault, fault]
    with pytest.warns(UserWarning, match="Retry downloading"):
        fetched(rows_site, tmp_path / "rows.bz2", n_retries=2)
    assert bz2.decompress((tmp_path / "rows.bz2").read_bytes()) == CONTENT
    assert len(rows_site.requests) == 3


@pytest.mark.filterwarnings("ignore:Retry")
@pytest.mark.parametrize(
    ("fault", "reason"), [("truncated", "7500 of 15000 bytes"), ("reset", "closed connection"), (503, "HTTP 503")]
)
def test_a_fault_that_stays_is_told_with_its_address_and_leaves_nothing(rows_site, tmp_path, fault, reason):
    rows_site.faults += [fault] * 3
    with pytest.raises(DownloadError, match=f"{rows_site.address}rows.txt could not be downloaded: .*{reason}"):
        fetched(rows_site, tmp_path / "rows.bz2", n_retries=2)
    assert len(rows_site.requests) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_not_asked_for_again(rows_site, tmp_path):
    with pytest.raises(DownloadError, match=r"HTTP 404.*MARGINTREE_DATA"):
        fetched(rows_site, tmp_path / "rows.bz2", "other.txt", n_retries=3)
    assert rows_site.requests == ["/other.txt"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:Retry")
def test_a_refused_connection_is_told(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/rows.txt"
    with pytest.raises(DownloadError, match="refused"):
        download(address, tmp_path / "rows.bz2", check=accept, n_retries=1, delay=0.0)
    assert list(tmp_path.iterdir()) == []


def test_there_is_a_pause_before_a_retry(rows_site, tmp_path):
    rows_site.faults += [503]
    start = time.perf_counter()
    with pytest.warns(UserWarning, match="Retry"):
        download(f"{rows_site.address}rows.txt", tmp_path / "rows.bz2", check=accept, n_retries=1, delay=0.2)
    assert time.perf_counter() - start >= 0.2


def test_a_file_that_fails_its_check_does_not_replace_the_one_there(rows_site, tmp_path):
    path = tmp_path / "rows.bz2"
    path.write_bytes(b"as it was")

    def refuse(received):
        assert bz2.decompress(received.read_bytes()) == CONTENT
        raise ValueError("wrong rows")

    with pytest.raises(ValueError, match="wrong rows"):
        fetched(rows_site, path, check=refuse, n_retries=3)
    assert path.read_bytes() == b"as it was"
    assert list(tmp_path.iterdir()) == [path]
    assert len(rows_site.requests) == 1


class Slow(BaseHTTPRequestHandler):
    """Sends a first block and then nothing for a long time."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(b"x" * 1000)
        self.wfile.flush()
        self.server.released.wait(30)

    def log_message(self, *_):
        """Stay silent."""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupted_download_leaves_nothing(tmp_path):
    from threading import Event

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.released = Event()
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    code = (
        "import sys; from pathlib import Path; from margintree.datasets.download import download; "
        "download(sys.argv[1], Path(sys.argv[2]) / 'rows.bz2', check=lambda path: None)"
    )
    url = f"http://127.0.0.1:{server.server_port}/rows.bz2"
    process = subprocess.Popen([sys.executable, "-c", code, url, str(tmp_path)], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 30
        while not list(tmp_path.iterdir()):
            assert time.monotonic() < deadline, "the download has not begun"
            time.sleep(0.01)
        assert not (tmp_path / "rows.bz2").exists()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        server.released.set()
        process.kill()
        server.shutdown()
        server.server_close()
    assert "KeyboardInterrupt" in errors
    assert list(tmp_path.iterdir()) == []
