"""Write the disks of a run's brokers as data directories, for `understudy audit`."""

from collections.abc import Mapping
from pathlib import Path

from storage.files import MemoryFiles


def write_disks(disks: Mapping[int, MemoryFiles], folder: Path) -> None:
    """Write the files of each broker to `broker-ID` in a new folder.

    A partition that never had a record has no files in memory, and so none there.

    Raises:
        FileExistsError: the folder exists.
    """
    folder.mkdir(parents=True)
    for broker_id, files in sorted(disks.items()):
        _write(files, "", folder / f"broker-{broker_id}")


def _write(files: MemoryFiles, directory: str, folder: Path) -> None:
    folder.mkdir()
    for name in files.list(directory):
        path = f"{directory}/{name}" if directory else name
        if files.is_directory(path):
            _write(files, path, folder / name)
        else:
            (folder / name).write_bytes(files.read_file(path))
