"""The compatibility levels, and their requirements for a new version."""

from typing import NamedTuple

DEFAULT = "BACKWARD"


class Level(NamedTuple):
    """Requirements of a level for a new version."""

    reads_older: bool
    """The new schema can read data written with the older one."""
    is_read_by_older: bool
    """The older schema can read data written with the new one."""
    transitive: bool
    """All older versions are compared, not only the newest."""


LEVELS = {
    "NONE": Level(reads_older=False, is_read_by_older=False, transitive=False),
    "BACKWARD": Level(reads_older=True, is_read_by_older=False, transitive=False),
    "BACKWARD_TRANSITIVE": Level(reads_older=True, is_read_by_older=False, transitive=True),
    "FORWARD": Level(reads_older=False, is_read_by_older=True, transitive=False),
    "FORWARD_TRANSITIVE": Level(reads_older=False, is_read_by_older=True, transitive=True),
    "FULL": Level(reads_older=True, is_read_by_older=True, transitive=False),
    "FULL_TRANSITIVE": Level(reads_older=True, is_read_by_older=True, transitive=True),
}
