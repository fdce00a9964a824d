"""Random steps of an administrator.

How numbers are chosen: `pieces`.
"""

from typing import Any

from comparison.histories.drawing.pieces import SETTINGS, TOPICS, Pieces
from protocol.apis import ApiKey

CREATION_IS_ASKED_SINCE = 4  # version of Metadata: before, the client has no choice
LISTED_BY_STATE, LISTED_BY_TYPE = 4, 5  # versions of ListGroups (KIP-518, KIP-848)


class Administration(Pieces):
    """Draws steps for topics, partitions, configs, and their descriptions."""

    def _create_topic(self, *, sound: bool = False) -> dict[str, Any]:
        free = [topic for topic in TOPICS if topic not in self._known.topics]
        topic = self._chance.choice(free or TOPICS)
        count = 0 if not sound and self._rarely(20) else self._chance.choice((1, 1, 2, 3))
        configs = {} if sound and self._rarely(2) else self._configs(2)
        if not sound and self._rarely(8):
            configs = {"cleanup.policy": "nonsense"}
        validate = not sound and self._rarely(10)
        if sound:
            configs = {name: SETTINGS[name][0] if self._rarely(6) else value for name, value in configs.items()}
        if count and not validate:
            self._known.topics.setdefault(topic, count)
        factor = 2 if not sound and self._rarely(15) else 1
        fields = {"topic": topic, "partitions": count, "configs": configs, "validate": validate or None}
        return self._step("create_topic", ApiKey.CREATE_TOPICS, **fields, factor=None if factor == 1 else factor)

    def _delete_topic(self) -> dict[str, Any]:
        topic = self._topic()
        self._known.topics.pop(topic, None)
        return self._step("delete_topic", ApiKey.DELETE_TOPICS, topic=topic, by_id=self._rarely(2) or None)

    def _create_partitions(self) -> dict[str, Any]:
        topic = self._topic()
        before = self._known.topics.get(topic, 1)
        count = before + self._chance.choice((0, 1, 1, 2)) if not self._rarely(6) else 0
        validate = self._rarely(5)
        if topic in self._known.topics and count > before and not validate:
            self._known.topics[topic] = count
        fields = {"topic": topic, "count": count, "validate": validate or None}
        return self._step("create_partitions", ApiKey.CREATE_PARTITIONS, **fields)

    def _metadata(self) -> dict[str, Any]:
        topics = self._chance.sample(TOPICS, self._chance.randint(1, 2))
        auto = self._rarely(8)
        if auto:
            for topic in topics:
                self._known.topics.setdefault(topic, 1)
        return self._step("metadata", ApiKey.METADATA, CREATION_IS_ASKED_SINCE, topics=topics, auto=auto or None)

    def _describe_topic(self) -> dict[str, Any]:
        topics = self._chance.sample(TOPICS, self._chance.randint(1, 2))
        return self._step("describe_topic", ApiKey.DESCRIBE_TOPIC_PARTITIONS, topics=topics)

    def _describe_configs(self) -> dict[str, Any]:
        keys = None if self._rarely(3) else self._chance.sample(sorted(SETTINGS), 2)
        synonyms = self._rarely(2) or None
        fields = {"topic": self._topic(), "keys": keys, "synonyms": synonyms}
        return self._step("describe_configs", ApiKey.DESCRIBE_CONFIGS, **fields)

    def _alter_configs(self) -> dict[str, Any]:
        changes: list[list[Any]] = []
        for name in self._chance.sample(sorted(SETTINGS), self._chance.choice((1, 1, 2))):
            operation = self._chance.choice((0, 0, 0, 1, 2, 3)) if not self._rarely(20) else 9
            if changes:  # of several wrong ones Kafka reports one, in the order of a hash map
                changes.append([name, 0, SETTINGS[name][0]])
            else:
                changes.append([name, operation, None if operation == 1 else self._chance.choice(SETTINGS[name])])
        validate = self._rarely(8) or None
        return self._step(
            "alter_configs", ApiKey.INCREMENTAL_ALTER_CONFIGS, topic=self._topic(), changes=changes, validate=validate
        )

    def _replace_configs(self) -> dict[str, Any]:
        return self._step("replace_configs", ApiKey.ALTER_CONFIGS, topic=self._topic(), configs=self._configs(2))

    def _delete_records(self) -> dict[str, Any]:
        return self._step("delete_records", ApiKey.DELETE_RECORDS, **self._place(), offset=self._offset())

    def _list_groups(self) -> dict[str, Any]:
        states = self._chance.choice(([], [], ["Stable"], ["Empty", "stable"], ["Asleep"]))
        step = self._step("list_groups", ApiKey.LIST_GROUPS)
        if step["v"] >= LISTED_BY_STATE:
            step["states"] = states
        if step["v"] >= LISTED_BY_TYPE:
            step["types"] = self._chance.choice(([], [], ["classic"], ["Consumer"], ["odd"]))
        return step

    def _describe_cluster(self) -> dict[str, Any]:
        step = self._step("describe_cluster", ApiKey.DESCRIBE_CLUSTER, operations=self._rarely(2) or None)
        if step["v"] and self._rarely(6):
            step["endpoint"] = self._chance.choice((2, 3))
        return step

    def _describe_log_dirs(self) -> dict[str, Any]:
        place = self._place()
        partitions = [place["partition"]]
        return self._step("describe_log_dirs", ApiKey.DESCRIBE_LOG_DIRS, topic=place["topic"], partitions=partitions)

    def _list_config_resources(self) -> dict[str, Any]:
        return self._step("list_config_resources", ApiKey.LIST_CONFIG_RESOURCES, 1)

    def _reassign(self) -> dict[str, Any]:
        replicas = self._chance.choice(([1], [1], [], [1, 1], [2], [-1], None))
        return self._step("reassign", ApiKey.ALTER_PARTITION_REASSIGNMENTS, **self._place(), replicas=replicas)

    def _list_reassignments(self) -> dict[str, Any]:
        place = self._place()
        fields = {"topic": place["topic"], "partitions": [place["partition"]]}
        return self._step("list_reassignments", ApiKey.LIST_PARTITION_REASSIGNMENTS, **fields)

    def _elect_leaders(self) -> dict[str, Any]:
        return self._step("elect_leaders", ApiKey.ELECT_LEADERS, **self._place(), type=self._chance.choice((0, 1)))
