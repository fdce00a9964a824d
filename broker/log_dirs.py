"""The log directory of a broker, as DescribeLogDirs reports it (core B.12). A broker has one."""

import os
import shutil
import tempfile
from pathlib import Path

from broker.node import Node
from storage.files import DiskFiles
from storage.files.overlay import OverlayFiles


def _root(node: Node) -> Path | None:
    """The directory; None in memory."""
    files = node.files.base if isinstance(node.files, OverlayFiles) else node.files
    return files.root.absolute() if isinstance(files, DiskFiles) else None


def path_of(node: Node) -> str:
    """The directory's absolute path; in memory, what Kafka's settings would have it be."""
    if (root := _root(node)) is not None:
        return str(root)
    configured = node.settings.list("log.dirs") or node.settings.list("log.dir")
    return os.path.abspath(configured[0])  # noqa: PTH100 - text in, text out: nothing need be there


def is_offline(node: Node) -> bool:
    """Whether the directory failed."""
    return node.logs is None or bool(node.logs.context.offline)


def space_of(node: Node) -> tuple[int, int]:
    """Total and usable bytes of the file system; in memory, of the one for temporary files. -1 if unknown."""
    try:
        usage = shutil.disk_usage(_root(node) or tempfile.gettempdir())
    except OSError:
        return -1, -1
    return usage.total, usage.free
