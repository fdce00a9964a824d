"""A command replaces its own earlier output, and never a file that the user wrote."""

import json
import os
from pathlib import Path

import pytest

from pipeline.rendering import html
from pipeline.rendering.plots import Picture, figure
from tests.broker.steering.journal.test_files import full_disk
from understudy.output_files import OutputFileError, check, make_folder, write, write_new

OWN = {
    "page": html.page("page.html", "Audit of x", "nothing").encode(),
    "json": json.dumps({"generator": "understudy audit", "path": "x"}, indent=2).encode(),
    "flat json": json.dumps({"generator": "understudy compare"}).encode(),
    "junit": b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="understudy audit" tests="1">',
    "table": b"understudy report: /data\n\nsizes: ...",
    "picture": Picture("a", "b", figure(1.0)[0]).png,
    "empty": b"",
}
OTHER = {
    "project": b'[project]\ndependencies = ["understudy-kafka"]\n',
    "page": b"<!doctype html><html><title>understudy</title>",
    "json": b'{"name": "x", "generator": "understudy audit"}',
    "junit": b'<testsuite name="mine">',
    "table": b"# how to run understudy audit: ...",
    "picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
}


@pytest.mark.parametrize("kind", OWN)
def test_an_earlier_output_is_replaced(tmp_path: Path, kind: str) -> None:
    """Each format has a mark by which an earlier output of Understudy is recognized."""
    (file := tmp_path / "out").write_bytes(OWN[kind])
    write(file, b"new", "--out")
    assert file.read_bytes() == b"new"


@pytest.mark.parametrize("kind", OTHER)
def test_a_file_of_the_users_stays(tmp_path: Path, kind: str) -> None:
    """A file of the user is not replaced, even one that names Understudy."""
    (file := tmp_path / "out").write_bytes(OTHER[kind])
    with pytest.raises(OutputFileError, match=r"--out .*out exists and was not written by understudy; choose another"):
        write(file, b"new", "--out")
    assert file.read_bytes() == OTHER[kind]


def test_a_format_without_a_mark_replaces_nothing(tmp_path: Path) -> None:
    """A capture has no mark: it replaces only an empty file, as mktemp creates it."""
    file = tmp_path / "out.pcap"
    file.touch()
    write_new(file, b"capture", "--output")
    with pytest.raises(OutputFileError, match=r"--output .*out\.pcap exists; choose another name"):
        write_new(file, b"another", "--output")
    assert file.read_bytes() == b"capture"


def test_a_path_that_cannot_be_written_is_named_with_the_remedy(tmp_path: Path) -> None:
    """A folder, a folder that does not exist, a file where a folder is needed."""
    with pytest.raises(OutputFileError, match="is a folder; name a file"):
        check(tmp_path, "--json")
    with pytest.raises(OutputFileError, match=r"no such folder: .*nowhere; create it first"):
        check(tmp_path / "nowhere" / "out", "--json")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputFileError, match="is a file; name a folder"):
        make_folder(tmp_path / "file", "--plots")
    with pytest.raises(OutputFileError, match="file/inner cannot be created: Not a directory; name another folder"):
        make_folder(tmp_path / "file" / "inner", "--plots")
    make_folder(tmp_path / "new" / "inner", "--plots")
    make_folder(tmp_path / "new" / "inner", "--plots")
    assert (tmp_path / "new" / "inner").is_dir()
    for name in ("x" * 300, "x" * 300 + "/out"):
        with pytest.raises(OutputFileError, match="File name too long"):
            check(tmp_path / name, "--out")
    check("/dev/stdout", "--out")


def test_a_disk_that_is_full_leaves_the_earlier_output(tmp_path: Path) -> None:
    """The new one is written beside it, and takes over its mode."""
    (file := tmp_path / "out").write_bytes(earlier := b"understudy audit: x")
    file.chmod(0o640)
    with full_disk(), pytest.raises(OutputFileError, match="cannot be written: File too large"):
        write(file, b"new" * 10, "--out")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out", earlier)]
    write(file, b"new" * 10, "--out")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new" * 10, 0o640)


def test_what_a_link_points_to_is_replaced(tmp_path: Path) -> None:
    """The file behind a link is replaced, and the link stays one."""
    (target := tmp_path / "target").write_bytes(OWN["table"])
    (link := tmp_path / "out").symlink_to(target)
    write(link, b"new", "--out")
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")


def test_a_file_that_was_made_read_only_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is opened, which the system refuses; the folder alone would let another file take its place."""
    (file := tmp_path / "out").write_bytes(OWN["table"])
    number, access = file.stat().st_ino, os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != file and access(path, mode))
    write(file, b"new", "--out")  # the system lets a superuser do it
    assert (file.stat().st_ino, list(tmp_path.iterdir())) == (number, [file])
