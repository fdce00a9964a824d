"""Entries of the journal, decoded for people and programs."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from broker.context import Connection
from broker.middleware.fields import errors, shown
from broker.middleware.journal import Entry, expand
from protocol.apis import ApiKey
from protocol.codec import BadFrame, RequestHeader, decode_header, decode_request, decode_response, known_versions
from protocol.records.batch import BATCH_HEADER_SIZE, MAGIC_V2, RecordBatch

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_UNREADABLE = (BadFrame, ValueError, IndexError, KeyError, AttributeError, TypeError)


class Decoded(NamedTuple):
    """An entry's messages; ``None`` for what is not there or cannot be read. Sizes: of sets of records left out."""

    header: RequestHeader | None
    request: Any | None
    request_sizes: list[int] | None
    response: Any | None
    response_sizes: list[int] | None


def decode(entry: Entry) -> Decoded:
    """The messages of an entry. Of records that were left out the first header is there."""
    try:
        header = decode_header(_head(entry))
    except BadFrame:
        return Decoded(None, None, None, None, None)
    key, version = header.api_key, header.api_version
    frame, request_sizes = expand(entry.frame, key, version)
    request = response = response_sizes = None
    if _is_known(key, version):
        with suppress(*_UNREADABLE):  # the journal tells of it all the same
            request = decode_request(frame, header)
    if entry.answer is not None:
        answer, response_sizes = expand(entry.answer, key, version)
        response = _response(key, version, bytes(answer[4:]))
    return Decoded(header, request, request_sizes, response, response_sizes)


def _head(entry: Entry) -> bytes | bytearray:
    frame = entry.frame
    first: bytes | bytearray = frame[0] if isinstance(frame, tuple) else frame
    return first


def _response(key: int, version: int, frame: bytes) -> Any | None:
    if not _is_known(key, version):
        version = 0  # only ApiVersions is answered then, in version 0 (KIP-511)
    with suppress(*_UNREADABLE):
        return decode_response(key, version, frame)[1]
    return None


def _is_known(key: int, version: int) -> bool:
    low, high = known_versions(key) or (0, -1)
    return low <= version <= high


def title(key: int) -> str:
    """An API's name, or its number where nobody knows it."""
    try:
        return ApiKey(key).title
    except ValueError:
        return f"api key {key}"


def told(entry: Entry, connection: Connection | None) -> dict[str, Any]:
    """An entry as JSON."""
    header, request, request_sizes, response, response_sizes = decode(entry)
    error = next(errors(response), None)
    return {
        "id": entry.id,
        "at_ms": entry.at_ms,
        "duration_ms": None if entry.duration_us < 0 else entry.duration_us / 1000,
        "broker": entry.broker,
        "listener": "" if connection is None else connection.listener,
        "connection": entry.connection,
        "client": "" if connection is None else f"{connection.client_host}:{connection.client_port}",
        "client_id": None if header is None else header.client_id,
        "software": _software(connection),
        "api": "unreadable" if header is None else title(header.api_key),
        "version": -1 if header is None else header.api_version,
        "correlation_id": -1 if header is None else header.correlation_id,
        "outcome": entry.outcome,
        "error": None if error is None else error.name,
        "fault": entry.fault,
        "request_bytes": entry.frame_bytes + 4,
        "response_bytes": entry.answer_bytes,
        "request": {} if request is None else shown(request, Records(request_sizes)),
        "response": None if response is None else shown(response, Records(response_sizes)),
    }


def _software(connection: Connection | None) -> str | None:
    if connection is None or connection.software_name == "unknown":
        return None
    return f"{connection.software_name} {connection.software_version}"


class Records:
    """Shows sets of records, one after the other: what is in them, not the records themselves."""

    def __init__(self, sizes: list[int] | None) -> None:
        self._sizes = None if sizes is None else iter(sizes)

    def __call__(self, data: Any) -> Mapping[str, Any] | None:
        """One set: its size, how many records it has (``None``: not all of it was kept) and who has sent it."""
        if data is None:
            return None
        raw = b"".join(data) if isinstance(data, list | tuple) else bytes(data)
        if not raw:
            return {"size_bytes": 0, "count": 0}
        size = len(raw) if self._sizes is None else next(self._sizes, len(raw))
        if len(raw) < BATCH_HEADER_SIZE or raw[16] != MAGIC_V2:
            return {"size_bytes": size, "count": None}
        first = RecordBatch(raw)
        return {
            "size_bytes": size,
            "count": _count(raw, size, first),
            "base_offset": first.base_offset,
            "producer_id": first.producer_id,
            "producer_epoch": first.producer_epoch,
            "base_sequence": first.base_sequence,
            "transactional": first.is_transactional,
            "control": first.is_control,
            "compression": _CODECS[min(first.attributes & 7, len(_CODECS) - 1)],
        }


def _count(raw: bytes, size: int, first: RecordBatch) -> int | None:
    if first.size >= size:
        return first.record_count
    if len(raw) < size:
        return None
    count = at = 0
    while at + BATCH_HEADER_SIZE <= len(raw):
        batch = RecordBatch(raw, at)
        if batch.magic != MAGIC_V2 or batch.size <= 0:
            return None
        count += batch.record_count
        at += batch.size
    return count
