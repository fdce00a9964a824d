"""Decoding of keys and values for the control plane: the console's messages, `records read --decode`.

Schemas come from the registry beside the brokers, from another one by its URL, or from files; data have the id of their
schema as a prefix or in a header (``pipeline.values.wire_format``). The libraries are those of exports, loaded on first
use. A schema may have to be compiled and a registry may be slow, so the work is done in a thread.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import anyio.to_thread

from broker.cluster.beside import Data
from control_api.answers.topics import Decoded
from pipeline.values.formats import Decode, Schema, SchemaError, decoder, tried
from pipeline.values.registry import Registry as RemoteRegistry
from pipeline.values.registry import RegistryError
from pipeline.values.wire_format import Framed, framed
from registry.errors import InvalidSchema
from registry.names import DEFAULT_CONTEXT, context_of
from registry.reading import resolved
from registry.state import State, Version

_PATIENCE_S = 5  # below the 30 s for which the command waits
_MOST_DECODERS = 200  # arbitrary: more schemas than a test has
_MOST_BYTES = 1024 * 1024  # arbitrary: decoding a larger value would delay all clients
_MOST_SUBJECTS = 5  # named of one schema: more would not be read
_ID, _GUID = 0, 1
Files = Mapping[tuple[str, str | None], tuple[str, Schema]]
"""Side and topic (``None``: all topics) -> the name of a file and its schema."""


class RegisteredSchema(NamedTuple):
    """A schema, and the subjects and versions that have it."""

    schema: Schema
    subjects: Sequence[tuple[str, int]]


class Source(Protocol):
    """Source of schemas by their ids."""

    url: str

    def seen(self, ids: Collection[int]) -> "Source":
        """Return a copy with the current schemas of these ids, which a thread may read."""
        ...

    def find(self, frame: Framed) -> RegisteredSchema | None:
        """Return the schema of the data. Called in a thread. Raises RegistryError."""
        ...


class LocalSource:
    """The registry beside the brokers."""

    def __init__(
        self, url: str, state: Callable[[], State], schemas: Mapping[int, RegisteredSchema | str] | None = None
    ) -> None:
        self.url, self._state, self._schemas = url, state, schemas or {}

    def seen(self, ids: Collection[int]) -> "LocalSource":
        """Return a copy with the current schemas: the state itself changes in the brokers' loop."""
        state = self._state()
        # Data have an id without a context: the default context comes first.
        contexts = [DEFAULT_CONTEXT, *sorted(state.contexts)]
        schemas: dict[int, RegisteredSchema | str] = {}
        for schema_id in ids:
            versions = [version for context in contexts for version in state.by_id(context, schema_id)]
            if versions:
                subjects = sorted((version.subject, version.version) for version in versions)
                schemas[schema_id] = _registered(versions[0], state, subjects)
        return LocalSource(self.url, self._state, schemas)

    def find(self, frame: Framed) -> RegisteredSchema | None:
        """Find a schema by its id: this registry has no GUIDs. Raises RegistryError: a referenced schema is gone."""
        schema = None if frame.schema_id is None else self._schemas.get(frame.schema_id)
        if isinstance(schema, str):
            raise RegistryError(schema)
        return schema


def _registered(version: Version, state: State, subjects: Sequence[tuple[str, int]]) -> RegisteredSchema | str:
    """Return a schema with its references, each once and after its own references; or the reason why that fails."""
    schema = version.schema
    try:
        needed = resolved(schema, state, context_of(version.subject))
    except InvalidSchema as error:
        return str(error)
    references = {reference.name: Schema(schema.type, reference.text) for reference in needed}
    return RegisteredSchema(Schema(schema.type, schema.text, references), subjects)


class RemoteSource:
    """A registry that runs elsewhere. A schema never changes, so each is fetched once."""

    def __init__(self, url: str) -> None:
        """Raises RegistryError: this is no URL."""
        self._registry = RemoteRegistry(url, _PATIENCE_S)
        self.url = self._registry.url
        self._known: dict[tuple[int | None, str | None], RegisteredSchema] = {}

    def seen(self, ids: Collection[int]) -> "RemoteSource":
        """Return itself."""
        del ids
        return self

    def find(self, frame: Framed) -> RegisteredSchema | None:
        """Find a schema by id or GUID."""
        key = (frame.schema_id, frame.guid)
        if key in self._known:
            return self._known[key]
        by_guid = frame.guid is not None
        schema = self._registry.by_guid(frame.guid or "") if by_guid else self._registry.by_id(frame.schema_id or 0)
        if schema is None:
            return None
        subjects = [] if by_guid else self._registry.subjects_of(frame.schema_id or 0)
        self._known[key] = RegisteredSchema(schema, subjects)
        return self._known[key]


class Decoding:
    """Decodes data by the schemas of a registry; data without a schema id by those of files."""

    def __init__(self, source: Source | None, files: Files) -> None:
        self._source, self._files = source, files
        self._decoders: OrderedDict[tuple[str, bool], Decode | str] = OrderedDict()

    async def decode(self, rows: Sequence[Data]) -> list[Decoded | None]:
        """Return the schema and the decoded value of each row."""
        frames = [_framed(row) for row in rows]
        ids = {frame.schema_id for frame in frames if frame is not None and frame.schema_id is not None}
        source = None if self._source is None else self._source.seen(ids)
        decoded: list[Decoded | None] = await anyio.to_thread.run_sync(lambda: self._decode(rows, frames, source))
        return decoded

    def _decode(
        self, rows: Sequence[Data], frames: Sequence[Framed | None], source: Source | None
    ) -> list[Decoded | None]:
        schemas: dict[
            tuple[int | None, str | None], RegisteredSchema | str
        ] = {}  # so that a registry that does not respond is asked once per page
        return [self._row(row, frame, source, schemas) for row, frame in zip(rows, frames, strict=True)]

    def _row(
        self,
        row: Data,
        frame: Framed | None,
        source: Source | None,
        schemas: dict[tuple[int | None, str | None], RegisteredSchema | str],
    ) -> Decoded | None:
        file, schema = self._files.get((row.side, row.topic)) or self._files.get((row.side, None)) or ("", None)
        if frame is None:
            return None if schema is None else self._by(schema, row.data, Decoded(source=file), framed=False)
        about = Decoded(
            magic=_ID if frame.guid is None else _GUID, schema_id=frame.schema_id, schema_guid=frame.guid,
            source=None if source is None else source.url,
        )  # fmt: skip
        key = (frame.schema_id, frame.guid)
        if key not in schemas:
            schemas[key] = _schema_of(source, frame)
        registered = schemas[key]
        if isinstance(registered, RegisteredSchema):
            subjects = sorted(registered.subjects, key=lambda pair: pair[0] != f"{row.topic}-{row.side}")
            named = tuple(f"{subject} version {version}" for subject, version in subjects[:_MOST_SUBJECTS])
            return self._by(registered.schema, frame.rest, _with(about, subjects=named), framed=True)
        if schema is None:
            return _with(about, problem=registered)
        behind = self._by(schema, frame.rest, _with(about, source=file), framed=True)
        return behind if behind.problem is None else self._by(schema, row.data, Decoded(source=file), framed=False)

    def _by(self, schema: Schema, data: bytes, about: Decoded, *, framed: bool) -> Decoded:
        """Decode data by a schema; return the value, or the reason why that fails."""
        about = _with(about, type=schema.kind)
        if len(data) > _MOST_BYTES:
            return _with(about, problem=f"it has {len(data)} bytes; up to {_MOST_BYTES} are decoded here")
        decode = self._decoder(schema, framed)
        if isinstance(decode, str):
            return _with(about, problem=decode)
        answer, problem = tried(decode, data)
        return _with(about, json=answer) if problem is None else _with(about, problem=problem)

    def _decoder(self, schema: Schema, framed: bool) -> Decode | str:
        key = (repr(schema), framed)
        if key not in self._decoders:
            try:
                self._decoders[key] = decoder(schema, framed=framed)
            except SchemaError as error:
                self._decoders[key] = str(error)
        self._decoders.move_to_end(key)
        if len(self._decoders) > _MOST_DECODERS:
            self._decoders.popitem(last=False)
        return self._decoders[key]


def _framed(row: Data) -> Framed | None:
    """Return the schema id or GUID of the data."""
    return framed(row.data, [{"key": key, "value": value} for key, value in row.headers], row.side)


def _schema_of(source: Source | None, frame: Framed) -> RegisteredSchema | str:
    """Return the schema of the data, or the reason why there is none."""
    name = f"schema {frame.schema_id}" if frame.guid is None else f"schema {frame.guid}"
    if source is None:
        return f"it is written with {name} of a registry, and no registry is known; give --schema-registry-url URL"
    try:
        return source.find(frame) or f"the registry at {source.url} has no {name}"
    except RegistryError as error:
        return str(error)


def _with(about: Decoded, **fields: object) -> Decoded:
    return replace(about, **fields)  # type: ignore[arg-type]  # names and types are those of Decoded
