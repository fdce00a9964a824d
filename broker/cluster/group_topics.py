"""The cluster's topics and a group's configs, as group coordinators read them."""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.image import Topic as ImageTopic
from broker.settings import BrokerSettings, groups
from broker.settings.model import ConfigResourceType

_RACK_TAGS = "streams.rack.aware.assignment.tags"


class GroupTopic:
    """One topic; implements :class:`broker.coordination.group.modern.topics.Topic`."""

    __slots__ = ("_image", "_topic", "id", "name", "partition_count")

    def __init__(self, topic: ImageTopic, image: ClusterImage) -> None:
        self._topic, self._image = topic, image
        self.name, self.id, self.partition_count = topic.name, topic.id, len(topic.partitions)

    @property
    def racks(self) -> Iterable[Iterable[str]]:
        """For each partition, the racks of its replicas."""
        racks = {broker.id: broker.rack for broker in self._image.brokers.values()}
        for partition in self._topic.partitions.values():
            yield [rack for replica in partition.replicas if (rack := racks.get(replica)) is not None]


class GroupTopics:
    """All topics; implements :class:`broker.coordination.group.modern.topics.Topics`."""

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self._image = image
        self._seen: frozenset[UUID] = frozenset()
        self._newest = self._looked = -1

    @property
    def version(self) -> int:
        """The offset of the metadata image."""
        return self._image().offset

    @property
    def newest_version(self) -> int:
        """The version in which the newest topic was created, or a later one."""
        image = self._image()
        if image.offset != self._looked:
            if image.topics_by_id.keys() - self._seen:
                self._newest = image.offset
            self._looked, self._seen = image.offset, frozenset(image.topics_by_id)
        return self._newest

    def named(self, name: str) -> GroupTopic | None:
        """Return the topic with this name."""
        image = self._image()
        topic = image.topics.get(name)
        return None if topic is None else GroupTopic(topic, image)

    def of_id(self, topic_id: UUID) -> GroupTopic | None:
        """Return the topic with this id."""
        image = self._image()
        topic = image.topics_by_id.get(topic_id)
        return None if topic is None else GroupTopic(topic, image)

    def names(self) -> Iterable[str]:
        """Return the names of all topics."""
        return self._image().topics


def own_setting(image: Callable[[], ClusterImage], settings: BrokerSettings) -> Callable[[str, str], int]:
    """Return a function for a group's numeric configs: its own, within the broker's bounds, else the broker's."""

    def find(group_id: str, name: str) -> int:
        stored = image().config(ConfigResourceType.GROUP, group_id)
        if name not in stored:
            return settings.int(f"group.{name}")
        value = groups.effective(stored, settings)[name]
        assert isinstance(value, int)  # the callers' names are all numeric
        return value

    return find


def own_rack_tags(image: Callable[[], ClusterImage], settings: BrokerSettings) -> Callable[[str], Sequence[str]]:
    """Return a function for the client tags that spread a streams group's standby tasks (4.4): own or broker's."""

    def find(group_id: str) -> Sequence[str]:
        tags = groups.effective(image().config(ConfigResourceType.GROUP, group_id), settings)[_RACK_TAGS]
        assert isinstance(tags, tuple)  # a LIST
        return tags

    return find
