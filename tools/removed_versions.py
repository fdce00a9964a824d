"""Schemas, like kio's, of API versions that Kafka 4.0 removed (KIP-896).

kio has the versions that 4.x serves. Each removed version is derived here from the next higher one by removing the
fields that it did not have yet and adding those that were dropped later. Source: the message definitions of Kafka 3.9.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from types import GenericAlias
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial._introspect import EntityTupleField, classify_field
from kio.static.primitive import i32, i64

from protocol.apis import ApiKey
from tools import newer_versions

_TYPES: Final[Mapping[str, Any]] = {"int32": i32, "int64": i64, "bool": bool, "int64[]": tuple[i64, ...]}
AddedField = tuple[str, str, str]
"""Name of the next field, name of the added field, its type."""


@dataclasses.dataclass(frozen=True)
class Step:
    """Fields that a version removes and adds compared with the next one, by struct name."""

    removed: frozenset[str] = frozenset()
    added: Mapping[str, AddedField] = dataclasses.field(default_factory=dict)


def _without(*fields: str) -> Step:
    return Step(frozenset(fields))


_SAME = Step()
_STEPS: Final[Mapping[ApiKey, Mapping[int, tuple[Step, Step]]]] = {
    ApiKey.PRODUCE: {
        2: (_without("ProduceRequest.transactional_id"), _SAME),
        1: (_SAME, _without("PartitionProduceResponse.log_append_time")),
        0: (_SAME, _without("ProduceResponse.throttle_time")),
    },
    ApiKey.FETCH: {
        3: (
            _without("FetchRequest.isolation_level"),
            _without("PartitionData.last_stable_offset", "PartitionData.aborted_transactions"),
        ),
        2: (_without("FetchRequest.max_bytes"), _SAME),
        1: (_SAME, _SAME),
        0: (_SAME, _without("FetchResponse.throttle_time")),
    },
    ApiKey.LIST_OFFSETS: {
        0: (
            Step(added={"ListOffsetsPartition": ("", "max_num_offsets", "int32")}),
            Step(
                frozenset({"ListOffsetsPartitionResponse.timestamp", "ListOffsetsPartitionResponse.offset"}),
                {"ListOffsetsPartitionResponse": ("", "old_style_offsets", "int64[]")},
            ),
        )
    },
    ApiKey.OFFSET_COMMIT: {
        1: (
            Step(
                frozenset({"OffsetCommitRequest.retention_time"}),
                {"OffsetCommitRequestPartition": ("committed_metadata", "commit_timestamp", "int64")},
            ),
            _SAME,
        ),
        0: (
            _without(
                "OffsetCommitRequest.generation_id_or_member_epoch",
                "OffsetCommitRequest.member_id",
                "OffsetCommitRequestPartition.commit_timestamp",
            ),
            _SAME,
        ),
    },
    ApiKey.OFFSET_FETCH: {0: (_SAME, _SAME)},
    ApiKey.CREATE_TOPICS: {
        1: (_SAME, _without("CreateTopicsResponse.throttle_time")),
        0: (_without("CreateTopicsRequest.validate_only"), _without("CreatableTopicResult.error_message")),
    },
    ApiKey.DELETE_TOPICS: {0: (_SAME, _without("DeleteTopicsResponse.throttle_time"))},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {
        1: (
            _without("OffsetForLeaderPartition.current_leader_epoch"),
            _without("OffsetForLeaderEpochResponse.throttle_time"),
        ),
        0: (_SAME, _without("EpochEndOffset.leader_epoch")),
    },
    ApiKey.WRITE_TXN_MARKERS: {0: (_SAME, _SAME)},
    ApiKey.CREATE_DELEGATION_TOKEN: {0: (_SAME, _SAME)},
    ApiKey.RENEW_DELEGATION_TOKEN: {0: (_SAME, _SAME)},
    ApiKey.EXPIRE_DELEGATION_TOKEN: {0: (_SAME, _SAME)},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {0: (_SAME, _SAME)},
    ApiKey.DESCRIBE_ACLS: {
        0: (_without("DescribeAclsRequest.pattern_type_filter"), _without("DescribeAclsResource.pattern_type"))
    },
    ApiKey.CREATE_ACLS: {0: (_without("AclCreation.resource_pattern_type"), _SAME)},
    ApiKey.DELETE_ACLS: {
        0: (_without("DeleteAclsFilter.pattern_type_filter"), _without("DeleteAclsMatchingAcl.pattern_type"))
    },
    ApiKey.DESCRIBE_CONFIGS: {
        0: (
            _without("DescribeConfigsRequest.include_synonyms"),
            Step(
                frozenset({"DescribeConfigsResourceResult.config_source", "DescribeConfigsResourceResult.synonyms"}),
                {"DescribeConfigsResourceResult": ("is_sensitive", "is_default", "bool")},
            ),
        )
    },
    ApiKey.ALTER_REPLICA_LOG_DIRS: {0: (_SAME, _SAME)},
    ApiKey.DESCRIBE_LOG_DIRS: {0: (_SAME, _SAME)},
}


def versions_of(key: int) -> list[int]:
    """Return all versions of an API that can be read and written, lowest first; empty for an unknown API."""
    name = api_key_map.get(key)
    ours = {*_STEPS.get(key, ()), *newer_versions.versions_of(key)}  # type: ignore[call-overload]
    return sorted(ours if name is None else {*ours, *schema_name_map[name]})


@cache
def request_schema(key: int, version: int) -> Any:
    """Return kio's class of a request, or a similar class for a removed version."""
    return _schema(key, version, 0, load_request_schema)


@cache
def response_schema(key: int, version: int) -> Any:
    """Return the class of a response, like :func:`request_schema`."""
    return _schema(key, version, 1, load_response_schema)


def _schema(key: int, version: int, direction: int, load: Callable[[int, int], Any]) -> Any:
    steps = _STEPS.get(key, {}).get(version)  # type: ignore[call-overload]
    if version in newer_versions.versions_of(key):
        return newer_versions.schema(key, version, "response" if direction else "request")
    if steps is None:
        return load(key, version)
    newer = (request_schema, response_schema)[direction](key, version + 1)
    return _derived(newer, version, steps[direction])


def _derived(newer: Any, version: int, step: Step) -> Any:
    """Derive the struct of an older version; no removed version is flexible."""
    name = newer.__name__
    fields: list[tuple[str, Any, Any]] = []
    before, added, kind = step.added.get(name, ("", "", ""))
    for field in dataclasses.fields(newer):
        if added and field.name == before:
            fields.append(_field(added, kind))
        if f"{name}.{field.name}" in step.removed:
            continue
        shape, type_ = classify_field(field), field.type
        if isinstance(shape, EntityTupleField):
            nullable = type(None) in getattr(field.type, "__args__", ())
            type_ = GenericAlias(tuple, (_derived(shape.type_, version, step), ...))
            type_ = type_ | None if nullable else type_
        default = {} if field.default is dataclasses.MISSING else {"default": field.default}
        fields.append((field.name, type_, dataclasses.field(metadata=field.metadata, kw_only=True, **default)))
    if added and not before:
        fields.append(_field(added, kind))
    namespace = {
        "__type__": newer.__type__,
        "__version__": version,
        "__flexible__": False,
        "__removed__": True,
        "__api_key__": getattr(newer, "__api_key__", None),
    }
    return dataclasses.make_dataclass(name, fields, frozen=True, kw_only=True, namespace=namespace)


def _field(name: str, kind: str) -> tuple[str, Any, Any]:
    metadata = {"kafka_type": kind.removesuffix("[]")}
    default = () if kind.endswith("[]") else dataclasses.MISSING
    return name, _TYPES[kind], dataclasses.field(metadata=metadata, kw_only=True, default=default)
