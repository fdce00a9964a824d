"""Parsing of schemas: resolves references, caches results, does long work in a thread."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from registry.errors import InvalidSchema, invalid_schema
from registry.formats import ParsedSchema, Resolved, in_thread, parse
from registry.names import context_of, full_name
from registry.records import compact_json
from registry.state import AVRO, Reference, Schema, State

T = TypeVar("T")
_KEPT = 1000  # parsed schemas: parsing one takes a millisecond, and a registry of tests has fewer
_MOST_REFERENCES = 1000  # as many as Confluent's cache of schemas; a circle of versions would not end
_NEWEST = -1


class Reader:
    """Parses schemas, and caches them by text and references."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], ParsedSchema] = OrderedDict()

    async def read(
        self, schema: Schema, state: State, context: str, *, normalize: bool, is_new: bool = False
    ) -> ParsedSchema:
        """Parse a schema within a context; for a new one more rules apply. Raises RegistryError 42201."""
        try:
            references = resolved(schema, state, context)
            key = (schema.type, schema.text, tuple(references), normalize, is_new and schema.type == AVRO)
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            parsed = await parse(schema.type, schema.text, references, normalize=normalize, is_new=is_new)
        except InvalidSchema as error:
            shown = compact_json(schema.fields())
            raise invalid_schema(f"Invalid schema {shown}, details: {error}") from error
        self._kept[key] = parsed
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return parsed

    @staticmethod
    async def compare(schema: Schema, work: Callable[[], T]) -> T:
        """Compare a schema, in a thread if it is long. Raises RegistryError 42201 if that fails."""
        try:
            return await in_thread(schema.text, work)
        except (InvalidSchema, RecursionError) as error:
            raise invalid_schema(f"Invalid schema {compact_json(schema.fields())}, details: {error}") from error


def pinned(schema: Schema, state: State, context: str) -> Schema:
    """Replace `latest` in a schema's references by the version's number, as Confluent's registry stores it."""
    return replace(schema, references=tuple(_pinned(reference, state, context) for reference in schema.references))


def _pinned(reference: Reference, state: State, context: str) -> Reference:
    live = state.versions(full_name(reference.subject, context)) if reference.version == _NEWEST else []
    return replace(reference, version=live[-1].version) if live else reference


def resolved(schema: Schema, state: State, context: str) -> list[Resolved]:
    """Return the schemas to which one refers, directly or indirectly, each after its own references.

    Raises:
        InvalidSchema: a referenced version does not exist, or there are too many references.
    """
    resolutions: dict[str, Resolved] = {}
    entered: set[str] = set()
    waiting: list[tuple[Reference, str, bool]] = [
        (reference, context, False) for reference in reversed(schema.references)
    ]
    while waiting:
        reference, within, done = waiting.pop()
        subject = full_name(reference.subject, within)
        versions = state.versions(subject, deleted=reference.version != _NEWEST)
        same = [version for version in versions if reference.version in {_NEWEST, version.version}]
        if not same:
            names = f'{{"name":"{reference.name}","subject":"{subject}","version":{reference.version}}}'
            raise InvalidSchema(
                f"No schema reference found for subject {subject} and version {reference.version}: {names}"
            )
        target = same[-1].schema
        if done:
            resolutions[reference.name] = Resolved(reference.name, target.text)
        elif reference.name not in entered:
            entered.add(reference.name)
            if len(entered) > _MOST_REFERENCES:
                raise InvalidSchema(f"more than {_MOST_REFERENCES} references")
            waiting.append((reference, within, True))
            waiting += [(reference, context_of(subject), False) for reference in reversed(target.references)]
    return list(resolutions.values())
