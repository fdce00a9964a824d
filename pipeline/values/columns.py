"""Columns of an export for schemas: ids and GUIDs in the data, and the decoded data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import pyarrow as pa

from pipeline.values.formats import Decode, Schema, SchemaError, decoder, tried
from pipeline.values.registry import Registry
from pipeline.values.wire_format import Framed, framed

SIDES: Final = ("key", "value")
IDS: Final = pa.schema(
    [
        pa.field(f"{side}_{name}", kind)
        for side in SIDES
        for name, kind in (("schema_id", pa.int64()), ("schema_guid", pa.string()))
    ]
)
DECODED: Final = pa.schema([pa.field(f"{side}_{name}", pa.string()) for side in SIDES for name in ("json", "error")])


@dataclass(frozen=True, slots=True)
class Schemas:
    """Sources of schemas. `files`: side and topic (None: all) -> schema, for data without a registry."""

    registry: str | None = None
    files: dict[tuple[str, str | None], Schema] = field(default_factory=dict)
    is_wanted: bool = False
    """Whether to add columns for ids even if nothing is decoded."""

    @property
    def columns(self) -> pa.Schema:
        """Return the columns that an export has for schemas."""
        if self.registry is not None or self.files:
            return pa.schema([*IDS, *DECODED])
        return IDS if self.is_wanted else pa.schema([])

    def check(self) -> None:
        """Check, before an engine starts, that the schemas can be used. Raises RegistryError, SchemaError."""
        if self.registry is not None:
            Registry(self.registry).check()
        for schema in self.files.values():
            decoder(schema, framed=False)


NO_SCHEMAS: Final = Schemas()


class Values:
    """The decoder of keys and values of one task. Each schema is fetched and parsed once."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._registry = None if schemas.registry is None else Registry(schemas.registry)
        self.of_registry = cache(self._of_registry)
        self.of_file = cache(self._of_file)

    def _of_registry(self, schema_id: int | None, guid: str | None) -> Decode | str | None:
        """Return the decoder of the data, or why there is none; None: no registry."""
        if self._registry is None:
            return None
        schema = self._registry.by_guid(guid) if guid is not None else self._registry.by_id(schema_id or 0)
        if schema is None:
            return f"the registry has no schema {schema_id if guid is None else guid}"
        try:
            return decoder(schema, framed=True)
        except SchemaError as error:
            return f"schema {schema_id if guid is None else guid}: {error}"

    def _of_file(self, side: str, topic: str, is_framed: bool) -> Decode | None:
        files = self._schemas.files
        schema = files.get((side, topic)) or files.get((side, None))
        return None if schema is None else decoder(schema, framed=is_framed)

    def row(self, side: str, topic: str, data: bytes, frame: Framed | None) -> tuple[str | None, str | None]:
        """Return the decoded key or value as JSON, or why it cannot be decoded."""
        reason = None
        if frame is not None:
            decode = self.of_registry(frame.schema_id, frame.guid)
            if callable(decode):
                return tried(decode, frame.rest)
            reason = decode
            if (own := self.of_file(side, topic, True)) is not None:
                answer, why = tried(own, frame.rest)
                if answer is not None:
                    return answer, None
                reason = reason or why
        if (own := self.of_file(side, topic, False)) is not None:
            answer, why = tried(own, data)
            return answer, None if answer is not None else reason or why
        return None, reason


def with_values(batches: Iterable[pa.RecordBatch], schemas: Schemas) -> Iterator[pa.RecordBatch]:
    """Return record batches with the columns of `schemas` added. Raises RegistryError, SchemaError."""
    columns = schemas.columns
    if not columns.names:
        yield from batches
        return
    values = Values(schemas)
    decodes = columns.names[-1] == DECODED.names[-1]
    for batch in batches:
        headers = batch.column("headers").to_pylist()
        topics = batch.column("topic").to_pylist()
        columns_by_name: dict[str, list[Any]] = {name: [] for name in columns.names}
        for side in SIDES:
            for data, those, topic in zip(batch.column(side).to_pylist(), headers, topics, strict=True):
                frame = None if data is None else framed(data, those, side)
                columns_by_name[f"{side}_schema_id"].append(frame and frame.schema_id)
                columns_by_name[f"{side}_schema_guid"].append(frame and frame.guid)
                if decodes:
                    answer = (None, None) if data is None else values.row(side, topic, data, frame)
                    columns_by_name[f"{side}_json"].append(answer[0])
                    columns_by_name[f"{side}_error"].append(answer[1])
        yield _joined(batch, columns, columns_by_name)


def _joined(batch: pa.RecordBatch, columns: pa.Schema, columns_by_name: Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
    arrays = [pa.array(columns_by_name[each.name], each.type) for each in columns]
    return pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=pa.schema([*batch.schema, *columns]))
