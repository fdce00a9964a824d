"""Decodes keys and values of records by their schemas, if the server has a decoder (``Cluster.beside``)."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

from broker.cluster.beside import Data
from broker.control.request import ControlRequest
from control_api.answers.topics import Decoded, Record

_MAGIC, _ID_END = 0, 5  # Confluent's format: a byte 0, then the schema's id as int32
_NOTHING_DECODES = (
    "the server has no schemas; start it with --schema-registry PORT, --schema-registry-url URL, "
    "--key-schema FILE or --value-schema FILE"
)


async def decoded(request: ControlRequest, topic: str, records: Sequence[Record]) -> list[Record]:
    """Return the records with their keys and values decoded."""
    rows = [row for record in records for row in _data(topic, record)]
    decode = request.cluster.beside.decode
    texts = iter([_framed(row) for row in rows] if decode is None else await decode(rows))
    with_texts = []
    for record in records:
        sides = {f"{row.side}_decoded": next(texts) for row in _data(topic, record)}
        with_texts.append(replace(record, **sides) if any(sides.values()) else record)
    return with_texts


def _data(topic: str, record: Record) -> Iterator[Data]:
    headers = [(header.key, header.value) for header in record.headers]
    for side, data in (("key", record.key), ("value", record.value)):
        if data is not None and record.control is None:
            yield Data(topic, side, data, headers)


def _framed(row: Data) -> Decoded | None:
    """Without schemas, decode only the schema id that the serializers of a schema registry write before the data."""
    if len(row.data) < _ID_END or row.data[0] != _MAGIC:
        return None
    return Decoded(
        json=None,
        type=None,
        magic=_MAGIC,
        schema_id=struct.unpack_from(">I", row.data, 1)[0],
        schema_guid=None,
        subjects=(),
        source=None,
        problem=_NOTHING_DECODES,
    )
