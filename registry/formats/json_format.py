"""JSON Schema: checked by `jsonschema` against the draft that it names, else draft 7; compared by `json_differences`.

Stored is the JSON without blanks, its names in the order in which they were sent; normalised, in alphabetical order.
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
"""The name by which a schema without an id of its own is found."""
_DRAFTS = (
    validators.Draft3Validator,
    validators.Draft4Validator,
    validators.Draft6Validator,
    validators.Draft7Validator,
    validators.Draft201909Validator,
    validators.Draft202012Validator,
)
_FORMATS = FormatChecker(formats=())
"""What is asked of texts in a schema: of patterns alone, and little of them."""
_BROKEN = (
    "missing )", "unbalanced parenthesis", "unterminated character set", "min repeat greater than max repeat",
    "bad escape (end of pattern)",
)  # fmt: skip
"""How Python's complaint begins about a pattern that Java does not take either; most others are Java's own."""

for _draft in _DRAFTS:
    _draft.VALIDATORS["uniqueItems"] = unique_items


@_FORMATS.checks("regex")
def is_pattern(text: object) -> bool:
    """Whether a pattern may be one of Java, with which Confluent's registry reads it."""
    if not isinstance(text, str):
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python will read some of Java's sets in another way one day
            re.compile(text)
    except re.error as error:
        # Java lets an anchor be repeated, and a group or the beginning not.
        dangling = error.msg == "nothing to repeat" and (not error.pos or text[error.pos - 1] in "(|")
        return not dangling and not error.msg.startswith(_BROKEN)
    except OverflowError:  # a repetition beyond 32 bits
        return False
    return True


class Json(ParsedSchema):
    """A schema, and what its references lead to."""

    def __init__(self, text: str, root: Located) -> None:
        self.text, self.root = text, root

    def incompatibilities(self, earlier: ParsedSchema) -> list[str]:
        """The changes that refuse documents which the earlier schema allows."""
        assert isinstance(earlier, Json)
        found = differences(earlier.root, self.root)
        return [f"{{errorType:'{each.kind}', description:'{each.text}', additionalInfo:''}}" for each in found]


def parse(text: str, references: Sequence[Resolved], *, normalize: bool) -> Json:
    """Read a schema whose references are found by their names as URIs. Raises InvalidSchema."""
    document = _document(text)
    try:
        validator: Any = validators.validator_for(document, default=validators.Draft7Validator)
    except ValueError as error:
        raise InvalidSchema(f"$schema is no URI: {error}") from error
    try:
        validator.check_schema(document, _FORMATS)
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise InvalidSchema(f"{error.message} at #/{where}") from error
    resources = [(each.name, _resource(_document(each.text))) for each in references]
    base = document.get("$id") or document.get("id") if isinstance(document, dict) else None
    base = base if isinstance(base, str) else _BASE
    known: Registry[Any] = Registry().with_resources(
        [*resources, (base, _resource(document)), (_BASE, _resource(document))]
    )
    root = Located(document, known.resolver(base))
    root.check_references()
    shown = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return Json(shown if normalize else compact_json(document), root)


def _document(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidSchema(f"it is no JSON: {error}") from error
    if not isinstance(found, dict | bool):
        raise InvalidSchema("a schema is an object, true or false")
    if isinstance(found, dict) and not isinstance(found.get("$schema", ""), str):
        raise InvalidSchema("$schema names a draft, as a string")
    return found


def _resource(document: Any) -> Resource[Any]:
    try:
        return Resource.from_contents(document, default_specification=DRAFT7)
    except CannotDetermineSpecification:
        return DRAFT7.create_resource(document)
