"""Comparison of topics with a streams group's hash (groups C.6), after ``StreamsGroup.hasMetadataExpired``."""

from collections.abc import Iterable
from dataclasses import dataclass

from broker.coordination.group.modern.topics import Topics, metadata_hash


@dataclass(slots=True)
class MetadataCheck:
    """The last check that began a group epoch: the epoch, the metadata version and the hash of the topics.

    It stays even if the heartbeat fails afterwards, although its epoch was not recorded: until the group reaches that
    epoch, each heartbeat compares the topics again.
    """

    epoch: int = 0
    _version: int = -1
    _hash: int = 0

    def is_due(self, epoch: int, names: Iterable[str], topics: Topics) -> bool:
        """Return whether a topic of the group has changed since the check; ``epoch`` is the group epoch."""
        if self._version == -1 or epoch < self.epoch:
            return True
        if topics.version != self._version:
            if metadata_hash(names, topics) != self._hash:
                return True
            self._version = topics.version
        return False

    def done(self, epoch: int, names: Iterable[str], topics: Topics) -> None:
        """Note a check that begins a group epoch."""
        if self._version != topics.version:
            self._hash = metadata_hash(names, topics)
        self.epoch, self._version = epoch, topics.version
