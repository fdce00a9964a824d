"""The commands of an administrator through confluent-kafka; written for 2.3 and for the newest."""

# ruff: noqa: D102 -- the methods are the commands of the driver contract, and those of tests/clients/script.py

import contextlib
from collections.abc import Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import admin as typed_admin

from tests.exam.drivers.kit import Unsupported

admin: Any = typed_admin
KINDS = {"topic": admin.ResourceType.TOPIC, "broker": admin.ResourceType.BROKER}


def ask(bootstrap_servers: str, timeout_ms: int, call: str, *arguments: Any, **options: Any) -> Any:
    """The result of a call of the library's client, about one thing."""
    client = admin.AdminClient({"bootstrap.servers": bootstrap_servers})
    answer = getattr(client, call)(*arguments, **options)
    if isinstance(answer, Mapping):
        (answer,) = answer.values()
    # Here, since the client's answers end with it.
    return answer.result(timeout_ms / 1000) if hasattr(answer, "result") else answer


def consumer_of(bootstrap_servers: str, group: str = "unused") -> "contextlib.closing[Any]":
    """A consumer that asks for offsets."""
    return contextlib.closing(Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group}))


class Administrator:
    """The commands, each with a client of its own."""

    def create_topic(
        self, bootstrap_servers: str, topic: str, partitions: int, timeout_ms: int, replicas: int = -1
    ) -> None:
        ask(bootstrap_servers, timeout_ms, "create_topics", [admin.NewTopic(topic, partitions, replicas)])

    def list_topics(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        return {"topics": list(ask(bootstrap_servers, timeout_ms, "list_topics", timeout=timeout_ms / 1000).topics)}

    def describe_topic(self, bootstrap_servers: str, topic: str, timeout_ms: int) -> Mapping[str, Any]:
        names = confluent_kafka.TopicCollection([topic])
        described = ask(bootstrap_servers, timeout_ms, "describe_topics", names)
        partitions = [
            {
                "partition": each.id,
                "leader": each.leader.id if each.leader else -1,
                "replicas": [node.id for node in each.replicas],
                "isr": [node.id for node in each.isr],
            }
            for each in described.partitions
        ]
        return {"partitions": partitions}

    def delete_topic(self, bootstrap_servers: str, topic: str, timeout_ms: int) -> None:
        ask(bootstrap_servers, timeout_ms, "delete_topics", [topic])

    def list_groups(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        listed = ask(bootstrap_servers, timeout_ms, "list_consumer_groups")
        return {"groups": [group.group_id for group in listed.valid]}

    def describe_group(self, bootstrap_servers: str, group: str, timeout_ms: int) -> Mapping[str, Any]:
        described = ask(bootstrap_servers, timeout_ms, "describe_consumer_groups", [group])
        return {"state": described.state.name, "members": len(described.members)}

    def delete_group(self, bootstrap_servers: str, group: str, timeout_ms: int) -> None:
        ask(bootstrap_servers, timeout_ms, "delete_consumer_groups", [group])

    def committed(
        self, bootstrap_servers: str, group: str, topic: str, partitions: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        with consumer_of(bootstrap_servers, group) as consumer:
            places = [TopicPartition(topic, index) for index in range(partitions)]
            offsets = [each.offset for each in consumer.committed(places, timeout=timeout_ms / 1000)]
        return {"offsets": [max(offset, -1) for offset in offsets]}

    def describe_cluster(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        cluster = ask(bootstrap_servers, timeout_ms, "describe_cluster")
        return {"brokers": [node.id for node in cluster.nodes], "controller": cluster.controller.id}

    def describe_configs(self, bootstrap_servers: str, kind: str, name: str, timeout_ms: int) -> Mapping[str, Any]:
        resource = admin.ConfigResource(KINDS[kind], name)
        described = ask(bootstrap_servers, timeout_ms, "describe_configs", [resource])
        return {"settings": {entry.name: entry.value for entry in described.values()}}

    def alter_config(
        self, bootstrap_servers: str, topic: str, setting: str, value: str | None, timeout_ms: int
    ) -> None:
        operation = admin.AlterConfigOpType.DELETE if value is None else admin.AlterConfigOpType.SET
        entry = admin.ConfigEntry(setting, value, incremental_operation=operation)
        resource = admin.ConfigResource(KINDS["topic"], topic, incremental_configs=[entry])
        ask(bootstrap_servers, timeout_ms, "incremental_alter_configs", [resource])

    def delete_records(
        self, bootstrap_servers: str, topic: str, partition: int, offset: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        if not hasattr(admin.AdminClient, "delete_records"):
            raise Unsupported("AdminClient.delete_records came with 2.4")
        places = [TopicPartition(topic, partition, offset)]
        return {"low": int(ask(bootstrap_servers, timeout_ms, "delete_records", places).low_watermark)}

    def list_offsets(
        self, bootstrap_servers: str, topic: str, partitions: int, timestamp: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        with consumer_of(bootstrap_servers) as consumer:
            places = [TopicPartition(topic, index, timestamp) for index in range(partitions)]
            if timestamp < 0:
                offsets = [consumer.get_watermark_offsets(each, timeout=timeout_ms / 1000)[0] for each in places]
            else:
                offsets = [each.offset for each in consumer.offsets_for_times(places, timeout=timeout_ms / 1000)]
        return {"offsets": offsets}
