"""The compatibility levels that there are, and what each asks of a new version."""

from typing import NamedTuple

DEFAULT = "BACKWARD"


class Level(NamedTuple):
    """What a level asks of a new version."""

    reads_older: bool
    """The new schema reads what the older one wrote."""
    is_read_by_older: bool
    """The older schema reads what the new one writes."""
    transitive: bool
    """All older versions count, not the newest only."""


LEVELS = {
    "NONE": Level(reads_older=False, is_read_by_older=False, transitive=False),
    "BACKWARD": Level(reads_older=True, is_read_by_older=False, transitive=False),
    "BACKWARD_TRANSITIVE": Level(reads_older=True, is_read_by_older=False, transitive=True),
    "FORWARD": Level(reads_older=False, is_read_by_older=True, transitive=False),
    "FORWARD_TRANSITIVE": Level(reads_older=False, is_read_by_older=True, transitive=True),
    "FULL": Level(reads_older=True, is_read_by_older=True, transitive=False),
    "FULL_TRANSITIVE": Level(reads_older=True, is_read_by_older=True, transitive=True),
}
