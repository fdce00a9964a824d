"""When a streams group compares the topics with its hash (groups C.6), after ``StreamsGroup.hasMetadataExpired``."""

from collections.abc import Iterable
from dataclasses import dataclass

from broker.coordination.group.modern.topics import Topics, metadata_hash


@dataclass(slots=True)
class MetadataCheck:
    """The last check that began an epoch: which one, in which version of the metadata, and of which topics.

    A heartbeat that fails after the check leaves it in place, although its epoch never comes: until another heartbeat
    brings that epoch, the topics are compared again each time.
    """

    epoch: int = 0
    _version: int = -1
    _hash: int = 0

    def is_due(self, epoch: int, names: Iterable[str], topics: Topics) -> bool:
        """Whether a topic of the group has changed since then; ``epoch`` is the group's."""
        if self._version == -1 or epoch < self.epoch:
            return True
        if topics.version != self._version:
            if metadata_hash(names, topics) != self._hash:
                return True
            self._version = topics.version
        return False

    def done(self, epoch: int, names: Iterable[str], topics: Topics) -> None:
        """Note a check that begins an epoch."""
        if self._version != topics.version:
            self._hash = metadata_hash(names, topics)
        self.epoch, self._version = epoch, topics.version
