"""Decodes entries of the journal, and shows them as JSON."""

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from broker.request.connection import Connection
from broker.settings.secrets import FIELDS
from broker.steering.journal.kept import expand
from broker.steering.journal.ring import Entry
from broker.time.clock import since_1970_ns
from protocol.apis import ApiKey
from protocol.codec import BadFrame, RequestHeader, decode_header, decode_request, decode_response, known_versions
from protocol.errors import ErrorCode
from protocol.paths import errors, to_json
from protocol.records.batch import BATCH_HEADER_SIZE, MAGIC_V2, RecordBatch, begins_with_batch

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_MOST_BATCHES = 1000  # described of one message; a Fetch of 55 MB may hold a million; ours, more are not read
_NAMES_OF_TOPICS = frozenset({"name", "topic", "topic_name"})
_UNREADABLE = (BadFrame, ValueError, IndexError, KeyError, AttributeError, TypeError, struct.error)
_UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
TopicName = Callable[[str], str | None]
"""Topic id as Kafka prints it -> topic name; ``None`` if no topic has or had the id."""


class Decoded(NamedTuple):
    """The decoded messages of an entry; ``None`` if missing or unreadable. Sizes are those of omitted record sets."""

    header: RequestHeader | None
    request: Any | None
    request_sizes: list[int] | None
    response: Any | None
    response_sizes: list[int] | None


def decode(entry: Entry) -> Decoded:
    """Decode the messages of an entry. Omitted record sets are replaced by the batch headers that were kept."""
    try:
        header = decode_header(_head(entry))
    except BadFrame:
        return Decoded(None, None, None, None, None)
    key, version = header.api_key, header.api_version
    frame, request_sizes = expand(entry.frame, key, version)
    request = response = response_sizes = None
    if _is_known(key, version):
        with suppress(*_UNREADABLE):  # the journal lists the request nevertheless
            request = decode_request(frame, header)
    if entry.answer is not None:
        answer, response_sizes = expand(entry.answer, key, version)
        response = _response(key, version, bytes(answer[4:]))  # without the size
    return Decoded(header, request, request_sizes, response, response_sizes)


def _head(entry: Entry) -> bytes | bytearray:
    frame = entry.frame
    first: bytes | bytearray = frame[0] if isinstance(frame, tuple) else frame
    return first


def _response(key: int, version: int, frame: bytes) -> Any | None:
    # A broker answers an unsupported ApiVersions version in version 0 (KIP-511); a fault answers in the request's.
    # The error code follows the correlation id.
    refused = key == ApiKey.API_VERSIONS and frame[4:6] == _UNSUPPORTED
    forms = (0, version) if refused or not _is_known(key, version) else (version,)
    for form in forms:
        if _is_known(key, form):
            with suppress(*_UNREADABLE):
                return decode_response(key, form, frame)[1]
    return None


def _is_known(key: int, version: int) -> bool:
    low, high = known_versions(key) or (0, -1)
    return low <= version <= high


def title(key: int) -> str:
    """Return an API's name, or its number if it is unknown."""
    try:
        return ApiKey(key).title
    except ValueError:
        return f"api key {key}"


_SINCE_1970_US = since_1970_ns() // 1000


def as_json(
    entry: Entry, known: Decoded, connection: Connection | None, name_of: TopicName, *, bodies: bool = True
) -> dict[str, Any]:
    """Return an entry as JSON; without ``bodies``, request and response are empty."""
    header, request, request_sizes, response, response_sizes = known
    error = next(errors(response), None)
    return {
        "id": entry.id,
        "at_ms": entry.at_ms,
        "ts_us": entry.began_us + _SINCE_1970_US,
        "duration_ms": None if entry.duration_us < 0 else entry.duration_us / 1000,
        "broker": entry.broker,
        "listener": "" if connection is None else connection.listener,
        "connection": entry.connection,
        "client": "" if connection is None else f"{connection.client_host}:{connection.client_port}",
        "client_id": None if header is None else header.client_id,
        "software": software(connection),
        "api": "unreadable" if header is None else title(header.api_key),
        "version": -1 if header is None else header.api_version,
        "correlation_id": -1 if header is None else header.correlation_id,
        "outcome": entry.outcome,
        "error": None if error is None else error.name,
        "fault": entry.fault,
        "request_bytes": entry.frame_bytes + 4,  # with the size field
        "response_bytes": entry.answer_bytes,
        "request": (with_topic_names(body_as_json(request, request_sizes), name_of) or {}) if bodies else {},
        "response": with_topic_names(body_as_json(response, response_sizes), name_of) if bodies else None,
    }


def software(connection: Connection | None) -> str | None:
    """Return a client's library and version, such as `librdkafka 2.14.2`; None if it has not sent them (KIP-511)."""
    if connection is None or connection.software_name == "unknown":
        return None
    return f"{connection.software_name} {connection.software_version}"


def body_as_json(message: Any | None, sizes: list[int] | None, *, batches: bool = False) -> dict[str, Any] | None:
    """Return a message as JSON, with record sets summarised (``batches``: with batch headers) and secrets as sizes."""
    if message is None:
        return None
    body: dict[str, Any] = to_json(message, {**_SECRETS, "records": Records(sizes, batches=batches)})
    return body


def with_topic_names(body: dict[str, Any] | None, name_of: TopicName) -> dict[str, Any] | None:
    """Fill in topic names where the message has only topic ids (KIP-516); returns the body, which is modified."""
    for value in () if body is None else body.values():
        for item in value if isinstance(value, list) else (value,):
            if not isinstance(item, dict):
                break
            if "topic_id" not in item:
                with_topic_names(item, name_of)
            elif (name := name_of(item["topic_id"] or "")) is not None:
                item.update({field: name for field in _NAMES_OF_TOPICS & item.keys() if not item[field]})
    return body


def _size_of(secret: Any) -> dict[str, int] | None:
    return None if secret is None else {"size_bytes": len(secret)}


_SECRETS = dict.fromkeys(FIELDS, _size_of)


class Records:
    """Summarises record sets, one call after the other, without the records themselves."""

    def __init__(self, sizes: list[int] | None, *, batches: bool = False) -> None:
        """``sizes`` are those of the sets, if only batch headers were kept; else ``None``."""
        self._sizes = None if sizes is None else iter(sizes)
        self._batches = batches

    def __call__(self, data: Any) -> Mapping[str, Any] | None:
        """Summarise one set: size, count of records (``None`` if not all headers were kept), and producer."""
        if data is None:
            return None
        raw = b"".join(data) if isinstance(data, list | tuple) else bytes(data)
        if not raw:
            return {"size_bytes": 0, "count": 0}
        size = len(raw) if self._sizes is None else next(self._sizes, len(raw))
        if not begins_with_batch(raw):
            return {"size_bytes": size, "count": None}
        batches, whole = _headers(raw, size)
        first = batches[0]
        summary: dict[str, Any] = {
            "size_bytes": size,
            "count": sum(batch.record_count for batch in batches) if whole else None,
            "base_offset": first.base_offset,
            "last_offset": batches[-1].last_offset if whole else None,
            "producer_id": first.producer_id,
            "producer_epoch": first.producer_epoch,
            "base_sequence": first.base_sequence,
            "transactional": first.is_transactional,
            "control": first.is_control,
            "compression": _codec(first),
            "batch_count": len(batches) if whole else None,
        }
        if self._batches:
            summary["batches"] = list(map(_batch, batches[:_MOST_BATCHES]))
        return summary


def _headers(raw: bytes, size: int) -> tuple[list[RecordBatch], bool]:
    """Return the batches of a set, kept whole or as headers only, and whether they include all complete batches."""
    cut = len(raw) < size
    batches: list[RecordBatch] = []
    at = covered = 0
    while at + BATCH_HEADER_SIZE <= len(raw):
        batch = RecordBatch(raw, at)
        if batch.magic != MAGIC_V2 or batch.size < BATCH_HEADER_SIZE or covered + batch.size > size:
            return batches or [batch], bool(batches)
        batches.append(batch)
        covered += batch.size
        at += BATCH_HEADER_SIZE if cut else batch.size
    return batches, covered + BATCH_HEADER_SIZE > size


def _codec(batch: RecordBatch) -> str:
    return _CODECS[batch.codec] if batch.codec < len(_CODECS) else str(batch.codec)


def _batch(batch: RecordBatch) -> dict[str, Any]:
    return {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "count": batch.record_count,
        "size_bytes": batch.size,
        "leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "compression": _codec(batch),
        "log_append_time": batch.is_log_append_time,
        "base_timestamp_ms": batch.base_timestamp_ms,
        "max_timestamp_ms": batch.max_timestamp_ms,
        "crc": batch.crc,
    }
