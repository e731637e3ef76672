"""SHA256SUMS in the forms that tools write, and no line that is passed over."""

import hashlib

import pytest

from margintree.datasets.data_files import DataError, check_sums

CONTENT = b"rows"
DIGEST, OTHER = hashlib.sha256(CONTENT).hexdigest(), hashlib.sha256(b"others").hexdigest()


@pytest.fixture
def data_file(tmp_path):
    path = tmp_path / "letter.bz2"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize(
    "form",
    ["{}  letter.bz2", "{} *letter.bz2", "{}  ./letter.bz2", "{}  data/letter.bz2", "SHA256 (letter.bz2) = {}"],
)
def test_every_form_of_a_line_is_compared(data_file, form):
    sums = data_file.parent / "SHA256SUMS"
    sums.write_text(form.format(DIGEST.upper()) + "\n")
    check_sums([data_file], sums)
    sums.write_text(form.format(OTHER) + "\n")
    with pytest.raises(DataError, match=OTHER):
        check_sums([data_file], sums)


@pytest.mark.parametrize("line", ["letter.bz2", "abc  letter.bz2", f"MD5 (letter.bz2) = {DIGEST}", f"{DIGEST} "])
def test_a_line_that_cannot_be_read_is_an_error(data_file, line):
    sums = data_file.parent / "SHA256SUMS"
    sums.write_text(f"{DIGEST}  letter.bz2\n\n{line}\n")
    with pytest.raises(DataError, match="has a line without a file name and its SHA-256"):
        check_sums([data_file], sums)


def test_two_lines_that_disagree_about_a_file_are_an_error(data_file):
    sums = data_file.parent / "SHA256SUMS"
    sums.write_text(f"{OTHER}  ./letter.bz2\n{DIGEST}  letter.bz2\n")
    with pytest.raises(DataError, match=OTHER):
        check_sums([data_file], sums)


def test_what_is_no_text_is_an_error_and_names_of_other_files_need_not_be(data_file):
    sums = data_file.parent / "SHA256SUMS"
    sums.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="has a line without a file name and its SHA-256"):
        check_sums([data_file], sums)
    sums.write_bytes(f"{DIGEST}  letter.bz2\n{OTHER}  ".encode() + b"\xff.bz2\n")
    check_sums([data_file], sums)
