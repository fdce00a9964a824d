"""A data directory that is only looked at: the same answers, and not a byte of it changes."""

from hashlib import sha256
from pathlib import Path

import pytest

from storage.files import DiskFiles
from storage.files.overlay import OverlayFiles
from storage.log import retention
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log_dir import LogDir
from tests.storage.logs import NOW_MS, SEGMENT, Tree, append, contents, one_each, records_batch


def fingerprint(root: Path) -> dict[str, tuple[str, int]]:
    """Contents and times of all files."""
    return {
        str(path.relative_to(root)): (sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def look_at(root: Path) -> LogDir:
    """Open a directory without the right to change it."""
    opened = LogDir.open(LogContext(OverlayFiles(DiskFiles(root, read_only=True))), node_id=1, now_ms=NOW_MS)
    opened.load_all(lambda _: LogConfig(), now_ms=NOW_MS)
    return opened


@pytest.mark.parametrize("clean", [True, False])
def test_nothing_changes_on_disk(disk: Tree, clean: bool) -> None:
    """Not by opening, cutting a torn tail, rebuilding, appending, deleting, or closing."""
    log = disk.log(internal_segment_bytes=SEGMENT)
    one_each(log, 5)
    append(disk.log("bar"), records_batch(b"a"))
    expected = contents(log)
    disk.stop(clean=clean)
    assert disk.root is not None
    if not clean:
        with (disk.root / "foo-0" / "00000000000000000004.log").open("ab") as file:
            file.write(b"torn")
    before = fingerprint(disk.root)
    opened = look_at(disk.root)
    log_seen = opened.get("foo", 0)
    assert log_seen is not None
    assert contents(log_seen) == expected
    log_seen.advance_high_watermark(5)
    append(log_seen, records_batch(b"new"))
    assert contents(log_seen)[-1] == (5, None, b"new")
    log_seen.delete_records_before(3)
    assert retention.run(log_seen, NOW_MS) == 3
    opened.checkpoint_high_watermarks()
    assert opened.delete_log("bar", 0, now_ms=NOW_MS)
    append(opened.create_log("baz", 0, now_ms=NOW_MS), records_batch(b"n"))
    opened.close()
    assert fingerprint(disk.root) == before


def test_a_file_below_is_extended_and_cut_in_memory(tmp_path: Path) -> None:
    """Reads join what is below and what was written here."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"0123456789")
    files = OverlayFiles(DiskFiles(tmp_path, read_only=True))
    file = files.open("d/f")
    assert file.append(b"abc") == 10
    assert bytes(file.view(8, 10)) == b"89abc"
    file.truncate(6)
    file.append(b"xyz")
    assert b"".join(file.read(0, 100)) == b"012345xyz"
    file.write_at(1, b"__")
    assert files.read_file("d/f") == b"0__345xyz"
    files.rename("d/f", "d/g")
    assert (files.list("d"), file.path) == (["g"], "d/g")
    assert (tmp_path / "d" / "f").read_bytes() == b"0123456789"


def test_a_read_only_tree_refuses_changes(tmp_path: Path) -> None:
    """Writes without the overlay are an error."""
    files = DiskFiles(tmp_path, read_only=True)
    with pytest.raises(PermissionError):
        files.open("f")
    with pytest.raises(PermissionError):
        files.replace("f", b"")
    files.lock()
    assert list(tmp_path.iterdir()) == []
