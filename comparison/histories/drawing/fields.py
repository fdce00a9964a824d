"""Random requests of any API, field by field: a value fits the field's name, or does not.

How numbers are chosen: `pieces`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from comparison.histories.drawing.pieces import GROUPS, IDS, MEMBERS, SETTINGS, TEXTS, TOPICS, Pieces
from comparison.histories.fields import parts_of
from protocol.apis import ApiKey
from protocol.codec import message_class
from protocol.types import Message, field_types

ALL = "@"
PLAYED: Sequence[ApiKey] = (
    ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.DESCRIBE_GROUPS, ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.INIT_PRODUCER_ID, ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_GROUPS, ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.OFFSET_DELETE, ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS, ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN,
)  # fmt: skip
"""Excluded: requests that wait for other members, concern the whole cluster, or change all histories' resources."""

TOPIC_LIKE = (*(f"@topic:{topic}" for topic in TOPICS), "@topic:t0", "@topic:t0", "@topic:t9")
GROUP_LIKE = (*(f"@group:{group}" for group in GROUPS), "@group:c0", "@group:h0", "@group:u9")
KNOWN_TEXTS: Mapping[str, Sequence[Any]] = {
    "topic": TOPIC_LIKE,
    "topic_name": TOPIC_LIKE,
    "group_id": GROUP_LIKE,
    "group": GROUP_LIKE,
    "transactional_id": [f"@txn:{symbol}" for symbol in IDS],
    "member_id": ["", "", *(f"@member:{member}" for member in MEMBERS["g0"]), "stranger", "AAAAAAAAAAAAAAAAAAAAAA"],
    "group_instance_id": (None, None, "i0", ""),
    "instance_id": (None, None, "i0", ""),
    "subscribed_topic_regex": (None, None, "", ".*", "("),
    "server_assignor": (None, None, "uniform", "range", "nonsense"),
    "rack_id": ("", None, "a"),
    "reason": (None, "why"),
}
NUMBERS: Sequence[tuple[str, Sequence[Any]]] = (
    (r"producer_id", ("@producer:p0", "@producer:p1", "@producer:stranger", -1, 7)),
    (r"producer_epoch", ("@epoch:p0", "@epoch:p1", -1, 0, 1, 32767)),
    (r"partition(_index|_id)?|partitions|partition_indexes", (0, 0, 0, 1, 2, -1, 9)),
    (r"num_partitions|count", (1, 2, 3, 0, -1, -2)),
    (r"replication_factor", (-1, 1, 1, 3, 0)),
    (r"broker_ids|replicas", (1, 1, 1, 2, -1)),
    (r"acks", (-1, -1, 1, 2, -2)),
    (r"isolation_level", (0, 1, 1, 2, -1)),
    (r"replica_id", (-1, -1, -1, -2, 1, 5)),
    (r"transaction_timeout_ms", (60_000, 0, -1, 1, 2**31 - 1)),
    (r"max_wait_ms", (0, 1, 50)),
    (r"rebalance_timeout_ms|session_timeout_ms", (-1, 6_000, 45_000, 300_000)),
    (r".*timeout_ms|retention_time_ms", (0, 1_000, 30_000, -1)),
    (r"min_bytes", (0, 0, 1, -1)),
    (r".*max_bytes", (1 << 20, 1 << 20, 100, 0, 1, -1)),
    (r"max_records|batch_size", (1, 2, 10, 0)),
    (r"session_id|session_epoch", (0, 0, -1, 1, 2)),
    (r".*share_session_epoch", (0, 0, -1, 1)),
    (r".*epoch.*", (-1, -1, 0, 0, 1, 2, -2, 7)),
    (r".*offset.*", (0, 1, 2, 3, 5, 100, -1, -2)),
    (r"timestamp", (-1, -1, -2, -3, -4, -5, -6, 0)),
    (r"key_type", (0, 1, 1, 2, 3, -1)),
    (r"resource_type", (2, 2, 32, 16, 0, 1, 3, 127)),
    (r"config_operation", (0, 1, 2, 3, 4, -1)),
    (r"election_type", (0, 1, 2, -1)),
    (r"acknowledge_types?|acquire_mode", (0, 1, 2, 3, 4, 5, -1)),
)
OTHERS = (0, 1, -1, 2)
UUIDS = (*(f"@id:{topic}" for topic in TOPICS), "@id:t0", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAATQ")
NAMED_TOPICS = frozenset({"CreatableTopic", "DeleteTopicState", "MetadataRequestTopic", "CreatePartitionsTopic"})
NEVER_NULL = frozenset({"records", "topics", "topic_partitions", "cursor", "transactional_id_pattern"})
"""Fields in which null means everything in the cluster, not just this history's; to null records Kafka is silent."""
BATCHED: Mapping[ApiKey, tuple[str, int]] = {
    ApiKey.ADD_PARTITIONS_TO_TXN: ("transactions", 4),
    ApiKey.OFFSET_FETCH: ("groups", 8),
}
IN_A_MAPS_ORDER = frozenset({"configs", "configuration_keys"})
"""Fields with configs: of several invalid ones Kafka reports one, in the order of a hash map."""
NEVER_DOUBLED = frozenset({"resources"})
"""Kafka does not respond to an AlterConfigs that only has one resource twice."""
NEVER_EMPTY = frozenset({"topics", "transactions"})


class Fields(Pieces):
    """Draws requests from their schemas."""

    def _fields(self) -> dict[str, Any]:
        key = self._chance.choice([api_key for api_key in PLAYED if api_key in self._versions])
        step = self._step("fields", key, api=key.name)
        body = self._body(message_class(key, "Request"), key)
        name, since = BATCHED.get(key, ("", 0))
        if step["v"] < since:  # an older version has one of them, without an array
            body[name] = body[name][:1] or [self._one_of(key, name)]
        return {**step, "body": body}

    def _one_of(self, key: ApiKey, name: str) -> dict[str, Any]:
        item_type, _, _ = parts_of(field_types(message_class(key, "Request"))[name])
        return self._body(item_type, key)

    def _body(self, kind: type[Message], key: ApiKey) -> dict[str, Any]:
        types = field_types(kind)
        return {name: self._field(kind, name, hint, key) for name, hint in types.items()}

    def _field(self, kind: type[Message], name: str, hint: Any, key: ApiKey) -> Any:
        item_type, array, nullable = parts_of(hint)
        if nullable and name not in NEVER_NULL and self._rarely(5):
            return None
        if name in {"cursor", "topology"}:
            return None
        if not array:
            return self._one(kind, name, item_type, key)
        least = 1 if name in NEVER_EMPTY else 0
        most = 1 if name in IN_A_MAPS_ORDER else 2
        count = min(max(least, self._chance.choice((0, 1, 1, 1, 1, 2))), most)
        drawn = [self._one(kind, name, item_type, key) for _ in range(count)]
        return [drawn[0], *drawn] if drawn and most > 1 and name not in NEVER_DOUBLED and self._rarely(15) else drawn

    def _one(self, kind: type[Message], name: str, item_type: Any, key: ApiKey) -> Any:
        if isinstance(item_type, type) and issubclass(item_type, Message):
            return self._body(item_type, key)
        if item_type is bool:
            return name != "include_documentation" and self._rarely(2)
        if item_type is UUID:
            return self._chance.choice(UUIDS)
        if item_type is bytes:
            return self._bytes(name)
        if item_type is str:
            return self._text(kind, name, key)
        if key is ApiKey.ALTER_CONFIGS and name == "resource_type":
            return self._chance.choice((2, 32, 16))  # Kafka does not respond if all resources are refused
        if key is ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
            return self._chance.choice((0, 0, -1))  # for other values, Kafka requests the state repeatedly, for seconds
        return self._number(name)

    def _bytes(self, name: str) -> Any:
        if name == "records":
            return self._chance.choice(("@records:1", "@records:2", "@records:3", "", "not a batch"))
        return self._chance.choice(("", "a", "bb"))

    def _text(self, kind: type[Message], name: str, key: ApiKey) -> Any:
        if self._rarely(15):
            return self._chance.choice([text for text in TEXTS if text is not None])
        if name in KNOWN_TEXTS:
            text = self._chance.choice(KNOWN_TEXTS[name])
            return "" if text is None else text
        if kind.__name__ in NAMED_TOPICS or name in {"topics", "subscribed_topic_names"}:
            return self._chance.choice(TOPIC_LIKE)
        if name in {"groups", "groups_names", "group_ids"}:
            return self._chance.choice(GROUP_LIKE)
        if name == "resource_name":
            return self._chance.choice((*TOPIC_LIKE, *GROUP_LIKE))
        if name in {"configuration_keys", "name"}:
            return self._chance.choice((*SETTINGS, *(TOPIC_LIKE if key is not ApiKey.CREATE_TOPICS else ())))
        if name == "value":
            return self._chance.choice([value for values in SETTINGS.values() for value in values])
        if name in {"key", "coordinator_keys"}:
            return self._chance.choice((*GROUP_LIKE, "@txn:x0"))
        return self._chance.choice([text for text in TEXTS if text is not None])

    def _number(self, name: str) -> Any:
        for pattern, values in NUMBERS:
            if re.fullmatch(pattern, name):
                return self._chance.choice(values)
        return self._chance.choice(OTHERS)
