"""A request to the registry, parsed as Confluent's does: names in the path, flags in the query, the body."""

import json
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request

from registry.errors import RegistryError, invalid_schema, invalid_version
from registry.names import DEFAULT_CONTEXT, normal, qualified
from registry.records import Json, compact_json
from registry.registry import LATEST
from registry.state import AVRO, Schema, references_of

MOST_BYTES = 8 * 1024 * 1024  # as for the control plane; its reason is there
_MOST_CHARACTERS = 1_000_000
"""Most characters of a schema: the default size limit of a request to a broker."""
_MOST_NUMBER = 2**31 - 1  # Java's Integer.MAX_VALUE
_MOST_DIGITS = 10  # of 2^31 - 1
GLOBAL = "__GLOBAL"
EMPTY = "__EMPTY"
"""Path segment for the subject with an empty name (Confluent's `QualifiedSubject`)."""


class Ask:
    """Parts of a request. `context` is NAME if the path begins with `/contexts/NAME`."""

    def __init__(self, request: Request, context: str = DEFAULT_CONTEXT) -> None:
        self.request, self.context = request, context

    def name(self, part: str) -> str:
        """Return a name in the path."""
        return unquote(self.request.path_params[part])

    def subject(self) -> str:
        """Return the subject in the path, with its context. Raises RegistryError 42208."""
        name = self.name("subject")
        if any(ord(character) < 32 for character in name) or name == GLOBAL:  # control characters
            raise RegistryError(42208, f"The specified subject '{name}' is not a valid.")
        return normal(qualified("" if name == EMPTY else name, self.context))

    def flag(self, name: str) -> bool:
        """Return a flag in the query; as in Java, anything but true is false."""
        return self.request.query_params.get(name, "").lower() == "true"

    def text(self, name: str, default: str = "") -> str:
        """Return a text in the query."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int) -> int:
        """Return a number in the query. Raises RegistryError 404 if it is not a number, as Confluent's does."""
        text = self.request.query_params.get(name)
        if text is None:
            return default
        number = _number(text.removeprefix("-"))
        if number is None:
            raise RegistryError(404, "HTTP 404 Not Found")
        return -number if text.startswith("-") else number

    def schema_id(self) -> int:
        """Return the id in the path. Raises RegistryError 404 if it is not a number."""
        schema_id = _number(self.name("id"))
        if schema_id is None:
            raise RegistryError(404, "HTTP 404 Not Found")
        return schema_id

    def version(self) -> int:
        """Return the version in the path; LATEST for `latest` and -1. Raises RegistryError 42202."""
        text = self.name("version")
        if text.lower() == "latest" or text == "-1":
            return LATEST
        number = _number(text)
        if not number:
            raise invalid_version(text)
        return number

    async def body(self) -> Json:
        """Return the JSON object of the body. Raises RegistryError 400, 413 or 422."""
        raw = bytearray()
        async for piece in self.request.stream():
            raw += piece
            if len(raw) > MOST_BYTES:
                raise RegistryError(413, f"the body is larger than {MOST_BYTES} bytes")
        try:
            body = json.loads(bytes(raw)) if raw.strip() else {}
        except (ValueError, RecursionError) as error:
            raise RegistryError(400, f"Unable to process JSON: {error}") from error
        if not isinstance(body, dict):
            raise RegistryError(400, "Unable to process JSON: the body must be an object")
        return body


def _number(text: str) -> int | None:
    """Parse an int32; return None if the text is not one."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if number <= _MOST_NUMBER else None


_SCHEMA_FIELDS = {"version", "id", "schemaType", "references", "metadata", "ruleSet", "schema", "subject", "guid",
                  "schemaTagsToAdd", "schemaTagsToRemove", "propagateSchemaTags", "deleted", "ts"}  # fmt: skip


def schema_of(body: Json) -> tuple[Schema, int | None, int | None]:
    """Return the schema of a body, with its id and version if there are any.

    Raises:
        RegistryError: 422 for fields that are unknown or of a wrong type, 42201 for an invalid reference.
    """
    for name in body.keys() - _SCHEMA_FIELDS:
        raise RegistryError(422, f"Unrecognized field: {name}")
    text, kind = body.get("schema") or "", body.get("schemaType") or AVRO
    if not isinstance(text, str) or not isinstance(kind, str):
        raise RegistryError(400, "Unable to process JSON: schema and schemaType must be strings")
    if len(text) > _MOST_CHARACTERS:
        raise RegistryError(42209, "Register operation failed because schema is too large")
    rows = body.get("references") or []
    references = references_of(rows) if isinstance(rows, list) else None
    if references is None:
        raise invalid_schema("Invalid schema reference: each needs a name, a subject and a version")
    return (
        Schema(kind.upper(), text, references, metadata_of(body, "metadata"), object_of(body, "ruleSet")),
        _positive(body, "id"),
        _positive(body, "version"),
    )


def object_of(body: Json, name: str) -> Json | None:
    """Return an object in a body; None if it is empty or missing. Raises RegistryError 400."""
    member = body.get(name)
    if member is not None and not isinstance(member, dict):
        raise RegistryError(400, f"Unable to process JSON: {name} must be an object")
    return member or None


def metadata_of(body: Json, name: str) -> Json | None:
    """Return metadata in a body; numbers and booleans become texts, as by Jackson. Raises RegistryError."""
    metadata = object_of(body, name)
    properties = None if metadata is None else object_of(metadata, "properties")
    if metadata is None or properties is None:
        return metadata
    texts = {key: _text(key, value) for key, value in properties.items()}
    return {**metadata, "properties": texts}


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise RegistryError(400, f"Unable to process JSON: {name} must be a string")
    return compact_json(value)


def _positive(body: Json, name: str) -> int | None:
    """Return a number in a body if it is above zero: for Confluent, -1 and 0 mean none."""
    number = body.get(name)
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number > _MOST_NUMBER):
        raise RegistryError(400, f"Unable to process JSON: {name} must be an int32")
    return number if number is not None and number > 0 else None
