"""Finds the snapshots (`*.checkpoint`) beside the metadata log."""

from pipeline.locations import Location, files_below
from storage.quorum_files import metadata_snapshot


def snapshots(folder: Location) -> list[tuple[int, Location]]:
    """Return end offset and location of each snapshot in the directory of the metadata log, the newest first."""
    located = [
        (key, entry.location)
        for entry in files_below(folder)
        if (key := metadata_snapshot(entry.location.name)) is not None
    ]
    return [(end, location) for (end, _), location in sorted(located, reverse=True)]
