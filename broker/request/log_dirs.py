"""The log directories of a broker: their space, and which are cordoned (core B.12, KIP-827, KIP-1066)."""

import shutil
import tempfile
from collections.abc import Collection
from uuid import UUID

from broker.coordination.metadata.image import ClusterImage
from storage.files import DiskFiles, Files
from storage.files.overlay import OverlayFiles


def space_of(files: Files) -> tuple[int, int]:
    """Return total and usable bytes of the file system; in memory, of the temporary directory's. -1 if unknown."""
    tree = files.base if isinstance(files, OverlayFiles) else files
    try:
        usage = shutil.disk_usage(tree.root if isinstance(tree, DiskFiles) else tempfile.gettempdir())
    except OSError:
        return -1, -1
    return usage.total, usage.free


def cordoned_ids(image: ClusterImage, broker_id: int) -> Collection[UUID]:
    """Return the ids of a broker's cordoned log directories, which get no new partitions."""
    broker = image.brokers.get(broker_id)
    return () if broker is None or broker.cordoned is None else broker.cordoned
