"""Snapshots (`*.checkpoint`) beside the metadata log. Needs no decoder, so that a driver imports it quickly."""

from pipeline.directory import Partition
from pipeline.locations import Location, files_below
from storage.quorum_files import metadata_snapshot


def snapshots(folder: Location) -> list[tuple[int, Location]]:
    """End offset and place of each snapshot in the directory of the metadata log, the newest first."""
    found = [
        (key, entry.location)
        for entry in files_below(folder)
        if (key := metadata_snapshot(entry.location.name)) is not None
    ]
    return [(end, location) for (end, _), location in sorted(found, reverse=True)]


def snapshot_end(log: Partition) -> int | None:
    """End offset of the newest snapshot of a log that does not begin at 0; None: the log has all records."""
    if log.segments[0].base_offset == 0:
        return None
    return max((end for end, _ in snapshots(log.directory)), default=None)
