"""Avro, parsed and compared by Apache's own Python library (`avro`), which has the rules of Java's.

The stored text is that of Java's `Schema.toString`: attributes in a fixed order, no spaces, repeated types by their
name. So two texts of one schema share an id, as in Confluent's registry.
"""

import json
import warnings
from collections.abc import Sequence
from typing import Any

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.constants import PRIMITIVE_TYPES
from avro.errors import AvroException
from avro.name import Names
from avro.schema import Schema as AvroSchema
from avro.schema import make_avsc_object

from registry.errors import InvalidSchema
from registry.formats import ParsedSchema, Resolved
from registry.formats.avro_rules import NAMED, RECORDS, check, for_library, full_name, space_of
from registry.records import compact_json

_ORDER = ("type", "name", "namespace", "doc", "fields", "symbols", "size", "items", "values", "default", "order")
"""Java's order of attributes. Others follow as written, then aliases; in a field, the aliases precede the others."""


class Avro(ParsedSchema):
    """An Avro schema with the types of its references."""

    def __init__(self, schema: AvroSchema, text: str) -> None:
        self.schema, self.text = schema, text

    def incompatibilities(self, earlier: ParsedSchema) -> list[str]:
        """Check, like Java's `SchemaCompatibility`, whether this schema reads data written with the earlier one."""
        assert isinstance(earlier, Avro)
        checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]  # its constructor has no types
        try:
            result = checker.get_compatibility(self.schema, earlier.schema)
        except AvroException as error:
            return [f"Unexpected exception during compatibility check: {error}"]
        if result.compatibility is SchemaCompatibilityType.compatible:
            return []
        kinds = ", ".join(dict.fromkeys(incompatibility.name.upper() for incompatibility in result.incompatibilities))
        where = ", ".join(sorted(map(str, result.locations)))
        what = "; ".join(sorted(result.messages))
        return [f"{{errorType:'{kinds}', description:'{what}', additionalInfo:'at {where}'}}"]

    def same_as(self, other: ParsedSchema) -> bool:
        """Whether both are equal with all types inlined; as in Java, `doc` and aliases are ignored."""
        return isinstance(other, Avro) and _bare(self.schema.to_json()) == _bare(other.schema.to_json())


def parse(text: str, references: Sequence[Resolved], *, normalize: bool, is_new: bool) -> Avro:
    """Parse a schema whose references define types; in a new one, defaults must be valid. Raises InvalidSchema."""
    names, writer = Names(validate_names=False), Writer(normalize=normalize)
    for reference in references:
        _schema_of(_document(reference.text), names)
    document = _document(text)
    schema = _schema_of(document, names)
    check(schema, defaults=is_new)
    return Avro(schema, compact_json(writer.written(document, "")))


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        stripped = text.strip()
        if stripped in PRIMITIVE_TYPES:  # Java's parser takes a name without quotes
            return stripped
        raise InvalidSchema(f"it is not JSON: {error}") from error


def _schema_of(document: Any, names: Names) -> AvroSchema:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown logical types are ignored, as the specification asks
            return make_avsc_object(for_library(document, ""), names, validate_names=False)
    except (AvroException, TypeError, ValueError, AttributeError, KeyError) as error:
        raise InvalidSchema(str(error)) from error


def _bare(document: Any) -> Any:
    """Return a document of the library without `doc` and aliases."""
    if isinstance(document, list):
        return [_bare(branch) for branch in document]
    if not isinstance(document, dict):
        return document
    kept = {name: value for name, value in document.items() if name not in {"doc", "aliases"}}
    inner = {name: _bare(kept[name]) for name in ("type", "fields", "items", "values") if name in kept}
    return {**kept, **inner}


class Writer:
    """Writes valid Avro documents as Java does."""

    def __init__(self, *, normalize: bool) -> None:
        self._normalize = normalize

    def written(self, document: Any, space: str) -> Any:
        """Return the document of a schema within a namespace."""
        if isinstance(document, list):
            return [self.written(branch, space) for branch in document]
        if isinstance(document, str):
            return document if document in PRIMITIVE_TYPES else self._short(full_name(document, space), space)
        kind = document["type"]
        if not isinstance(kind, str):  # {"type": {...}}: the outer braces have no meaning
            return self.written(kind, space)
        if kind in NAMED:
            return self._named(document, kind, space)
        if kind == "array":
            return self._ordered({**document, "items": self.written(document["items"], space)})
        if kind == "map":
            return self._ordered({**document, "values": self.written(document["values"], space)})
        return self.written(kind, space) if set(document) == {"type"} else self._ordered(document)

    def _named(self, document: dict[str, Any], kind: str, space: str) -> Any:
        name = document["name"]
        namespace = space_of(document, space)
        simple = name.rpartition(".")[2]
        written = {**document, "name": simple}
        written.pop("namespace", None)
        if namespace != space:
            written["namespace"] = namespace
        if kind in RECORDS:
            written["fields"] = [
                self._ordered({**field, "type": self.written(field["type"], namespace)}, field=True)
                for field in document["fields"]
            ]
        return self._ordered(written)

    def _short(self, full: str, space: str) -> str:
        """Return the name of a type, without its namespace if that is the enclosing one."""
        namespace, _, simple = full.rpartition(".")
        return simple if namespace == space else full

    def _ordered(self, document: dict[str, Any], *, field: bool = False) -> dict[str, Any]:
        """Sort attributes in Java's order; in a field, `name` comes first, and the order ascending is omitted."""
        order = ("name", "type", "doc", "default", "order", "aliases") if field else _ORDER
        others = [name for name in document if name not in {*order, "aliases"}]
        names = [*order, *(sorted(others) if self._normalize else others), *(() if field else ("aliases",))]
        written = {name: document[name] for name in names if name in document}
        if field and written.get("order") == "ascending":
            del written["order"]
        return written
