"""JSON Schema: checked by `jsonschema` against its draft, by default draft 7; compared by `json_differences`.

The stored text is the JSON without spaces, with names in the order in which they were sent, or sorted if normalised.
"""

import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

from jsonschema import FormatChecker, validators
from jsonschema.exceptions import SchemaError
from referencing import Registry, Resource
from referencing.exceptions import CannotDetermineSpecification
from referencing.jsonschema import DRAFT7

from registry.errors import InvalidSchema
from registry.formats import ParsedSchema, Resolved
from registry.formats.json_differences import Located, differences
from registry.formats.json_values import unique_items
from registry.records import compact_json

_BASE = "urn:understudy:schema"
"""URI of a schema without an id of its own."""
_DRAFTS = (
    validators.Draft3Validator,
    validators.Draft4Validator,
    validators.Draft6Validator,
    validators.Draft7Validator,
    validators.Draft201909Validator,
    validators.Draft202012Validator,
)
_FORMATS = FormatChecker(formats=())
"""Format checks of texts in a schema: only `regex` is checked, and not strictly."""
_BROKEN = (
    "missing )", "unbalanced parenthesis", "unterminated character set", "min repeat greater than max repeat",
    "bad escape (end of pattern)",
)  # fmt: skip
"""Beginnings of Python's messages for patterns that Java rejects, too; most others are valid in Java."""

for _draft in _DRAFTS:
    _draft.VALIDATORS["uniqueItems"] = unique_items


@_FORMATS.checks("regex")
def is_pattern(text: object) -> bool:
    """Whether a pattern may be valid in Java, as which Confluent's registry compiles it."""
    if not isinstance(text, str):
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a later Python may interpret some of Java's sets differently
            re.compile(text)
    except re.error as error:
        # Java allows repetition of an anchor, but not after the beginning of a group or pattern.
        dangling = error.msg == "nothing to repeat" and (not error.pos or text[error.pos - 1] in "(|")
        return not dangling and not error.msg.startswith(_BROKEN)
    except OverflowError:  # a repetition beyond 32 bits
        return False
    return True


class Json(ParsedSchema):
    """A JSON Schema with its resolved references."""

    def __init__(self, text: str, root: Located) -> None:
        self.text, self.root = text, root

    def incompatibilities(self, earlier: ParsedSchema) -> list[str]:
        """List the changes with which documents are rejected that the earlier schema allows."""
        assert isinstance(earlier, Json)
        differing = differences(earlier.root, self.root)
        return [
            f"{{errorType:'{difference.kind}', description:'{difference.text}', additionalInfo:''}}"
            for difference in differing
        ]


def parse(text: str, references: Sequence[Resolved], *, normalize: bool) -> Json:
    """Parse a schema; the names of its references are URIs. Raises InvalidSchema."""
    document = _document(text)
    try:
        validator: Any = validators.validator_for(document, default=validators.Draft7Validator)
    except ValueError as error:
        raise InvalidSchema(f"$schema is not a URI: {error}") from error
    try:
        validator.check_schema(document, _FORMATS)
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise InvalidSchema(f"{error.message} at #/{where}") from error
    resources = [(reference.name, _resource(_document(reference.text))) for reference in references]
    base = document.get("$id") or document.get("id") if isinstance(document, dict) else None
    base = base if isinstance(base, str) else _BASE
    resources_by_uri: Registry[Any] = Registry().with_resources(
        [*resources, (base, _resource(document)), (_BASE, _resource(document))]
    )
    root = Located(document, resources_by_uri.resolver(base))
    root.check_references()
    shown = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return Json(shown if normalize else compact_json(document), root)


def _document(text: str) -> Any:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidSchema(f"it is not JSON: {error}") from error
    if not isinstance(document, dict | bool):
        raise InvalidSchema("a schema is an object, true or false")
    if isinstance(document, dict) and not isinstance(document.get("$schema", ""), str):
        raise InvalidSchema("$schema names a draft, as a string")
    return document


def _resource(document: Any) -> Resource[Any]:
    try:
        return Resource.from_contents(document, default_specification=DRAFT7)
    except CannotDetermineSpecification:
        return DRAFT7.create_resource(document)
