"""The log directory of a broker, as DescribeLogDirs reports it (core B.12). Each broker has one."""

import os
import shutil
import tempfile
from pathlib import Path

from broker.request.node import Node
from storage.files import DiskFiles
from storage.files.overlay import OverlayFiles


def _root(node: Node) -> Path | None:
    """Return the directory; None if logs are in memory."""
    files = node.files.base if isinstance(node.files, OverlayFiles) else node.files
    return files.root.absolute() if isinstance(files, DiskFiles) else None


def path_of(node: Node) -> str:
    """Return the directory's absolute path; for logs in memory, the path that `log.dirs` or `log.dir` gives."""
    if (root := _root(node)) is not None:
        return str(root)
    configured = node.settings.list("log.dirs") or node.settings.list("log.dir")
    return os.path.abspath(configured[0])  # noqa: PTH100 - a string for the response; the path need not exist


def is_offline(node: Node) -> bool:
    """Whether the log directory has failed."""
    return node.logs is None or bool(node.logs.context.offline)


def space_of(node: Node) -> tuple[int, int]:
    """Return total and usable bytes of the file system; in memory, of the temporary directory's. -1 if unknown."""
    try:
        usage = shutil.disk_usage(_root(node) or tempfile.gettempdir())
    except OSError:
        return -1, -1
    return usage.total, usage.free
