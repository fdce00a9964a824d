"""State of the registry: the replay of the records of `_schemas`, or of any prefix of them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from registry.levels import LEVELS
from registry.names import DEFAULT_CONTEXT, context_of, full_name, prefix_of
from registry.records import Json, parsed

AVRO = "AVRO"
_LEVEL = "compatibilityLevel"


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference to another schema: its name in the referring schema, its subject and version."""

    name: str
    subject: str
    version: int

    def document(self) -> Json:
        """Return the reference as JSON."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema without subject, version and id: its type, text, references, metadata and rules."""

    type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None

    @property
    def identity(self) -> str:
        """Text that is equal for schemas that share an id."""
        parts = [
            self.type,
            self.text,
            [reference.document() for reference in self.references],
            self.metadata,
            self.rule_set,
        ]
        return json.dumps(parts, sort_keys=True)

    @property
    def properties(self) -> Json:
        """Properties of its metadata."""
        properties = (self.metadata or {}).get("properties")
        return properties if isinstance(properties, dict) else {}

    def fields(self) -> Json:
        """Return the fields of responses and records, without empty ones; the type Avro is omitted."""
        fields: Json = {} if self.type == AVRO else {"schemaType": self.type}
        if self.references:
            fields["references"] = [reference.document() for reference in self.references]
        if self.metadata is not None:
            fields["metadata"] = self.metadata
        if self.rule_set is not None:
            fields["ruleSet"] = self.rule_set
        return {**fields, "schema": self.text}


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False

    def document(self) -> Json:
        """Return the version as JSON for responses."""
        return {"subject": self.subject, "version": self.version, "id": self.id, **self.schema.fields()}

    def value(self) -> Json:
        """Return the value of its record."""
        return {**self.document(), "deleted": self.deleted}


@dataclass(slots=True)
class State:
    """Subjects, settings, modes and contexts."""

    subjects: dict[str, dict[int, Version]] = field(default_factory=dict)
    configs: dict[str | None, Json] = field(default_factory=dict)
    modes: dict[str | None, str] = field(default_factory=dict)
    contexts: set[str] = field(default_factory=set)
    newest_ids: dict[str, int] = field(default_factory=dict)
    """Context -> the highest id that any of its schemas has had: ids are not assigned twice."""
    _ids: dict[tuple[str, int], dict[tuple[str, int], None]] = field(default_factory=dict)
    _identities: dict[tuple[str, str], dict[int, int]] = field(default_factory=dict)
    """Context and identity of a schema -> its ids, the oldest first, and the number of versions with each."""

    # --- lookups -----------------------------------------------------------------------------------------------------

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Return the versions of a subject in order; with ``deleted``, including soft-deleted ones."""
        by_number = self.subjects.get(subject, {})
        return [by_number[number] for number in sorted(by_number) if deleted or not by_number[number].deleted]

    def places(self, subject: str) -> list[str]:
        """List the names under which a subject is looked up: its own; without a context, then those in all contexts."""
        if context_of(subject) != DEFAULT_CONTEXT:
            return [subject]
        return [subject, *(f"{prefix_of(context)}{subject}" for context in sorted(self.contexts))]

    def by_id(self, context: str, schema_id: int) -> list[Version]:
        """Return the versions with an id, including deleted ones, the oldest first."""
        places = self._ids.get((context, schema_id), {})
        return [self.subjects[subject][version] for subject, version in places]

    def id_of(self, context: str, schema: Schema) -> int | None:
        """Return the id of a schema that a subject of the context has or had."""
        return next(iter(self._identities.get((context, schema.identity), ())), None)

    def referring(self, subject: str, version: int) -> list[Version]:
        """Return the versions that refer to this reference and are not deleted."""
        return [
            referrer
            for referrer in self.all_versions()
            if not referrer.deleted
            and any(
                reference.version == version and full_name(reference.subject, context_of(referrer.subject)) == subject
                for reference in referrer.schema.references
            )
        ]

    def referenced(self) -> set[tuple[str, int]]:
        """Return subject and version of all references of versions that are not deleted."""
        return {
            (full_name(reference.subject, context_of(version.subject)), reference.version)
            for version in self.all_versions()
            if not version.deleted
            for reference in version.schema.references
        }

    def all_versions(self) -> Iterator[Version]:
        """Yield all versions, by subject and number."""
        for subject in sorted(self.subjects):
            yield from self.versions(subject, deleted=True)

    # --- replay ------------------------------------------------------------------------------------------------------

    def replay(self, key: bytes | None, value: bytes | None) -> bool:
        """Apply one record; return False for one that this registry cannot read, which changes nothing."""
        name, content = parsed(key), parsed(value)
        if name is None or (value is not None and content is None):
            return False
        kind, subject = name.get("keytype"), name.get("subject")
        if kind in {"CONFIG", "MODE"} and isinstance(subject, str | None):
            return self._setting(kind, subject, content)
        if kind == "NOOP":
            return True
        if kind == "CONTEXT" and isinstance(name.get("context"), str):
            (self.contexts.discard if content is None else self.contexts.add)(name["context"])
            return True
        if not isinstance(subject, str):
            return False
        if kind == "SCHEMA" and isinstance(name.get("version"), int):
            return self._schema(subject, name["version"], content)
        if kind in {"DELETE_SUBJECT", "CLEAR_SUBJECT"}:
            return self._subject(kind, subject, content)
        return False

    def _setting(self, kind: str, subject: str | None, content: Json | None) -> bool:
        if kind == "CONFIG":
            if content is None:
                self.configs.pop(subject, None)
            elif content.get(_LEVEL) is not None and content[_LEVEL] not in tuple(LEVELS):
                return False
            else:
                left_out = {"subject"} if content.get(_LEVEL) else {"subject", _LEVEL}
                self.configs[subject] = {name: value for name, value in content.items() if name not in left_out}
        elif content is None:
            self.modes.pop(subject, None)
        elif isinstance(content.get("mode"), str):
            self.modes[subject] = content["mode"]
        else:
            return False
        return True

    def _schema(self, subject: str, number: int, content: Json | None) -> bool:
        version = None if content is None else version_of(subject, number, content)
        if content is not None and version is None:
            return False
        self._forget(subject, number)
        if version is not None:
            context = context_of(subject)
            if context != DEFAULT_CONTEXT:
                self.contexts.add(context)
            self.subjects.setdefault(subject, {})[number] = version
            self._ids.setdefault((context, version.id), {})[subject, number] = None
            ids = self._identities.setdefault((context, version.schema.identity), {})
            ids[version.id] = ids.get(version.id, 0) + 1
            self.newest_ids[context] = max(self.newest_ids.get(context, 0), version.id)
        return True

    def _forget(self, subject: str, number: int) -> None:
        """Remove a version from the indexes."""
        versions = self.subjects.get(subject, {})
        old = versions.pop(number, None)
        if old is None:
            return
        if not versions:
            del self.subjects[subject]
        context = context_of(subject)
        places = self._ids[context, old.id]
        del places[subject, number]
        if not places:
            del self._ids[context, old.id]
        ids = self._identities[context, old.schema.identity]
        ids[old.id] -= 1
        if not ids[old.id]:
            del ids[old.id]
        if not ids:
            del self._identities[context, old.schema.identity]

    def _subject(self, kind: str, subject: str, content: Json | None) -> bool:
        """Apply DELETE_SUBJECT, a soft deletion up to a version, or CLEAR_SUBJECT: remove soft-deleted versions."""
        if content is None:
            return True
        if kind == "CLEAR_SUBJECT":
            for version in self.versions(subject, deleted=True):
                if version.deleted:
                    self._forget(subject, version.version)
            return True
        last = content.get("version")
        if not isinstance(last, int):
            return False
        for version in self.versions(subject):
            if version.version <= last:
                self.subjects[subject][version.version] = replace(version, deleted=True)
        return True


def version_of(subject: str, number: int, content: Mapping[str, Any]) -> Version | None:
    """Parse a version from its record; None if fields are missing."""
    schema_id, text, kind = content.get("id"), content.get("schema"), content.get("schemaType") or AVRO
    references = references_of(content.get("references") or ())
    if not isinstance(schema_id, int) or not isinstance(text, str) or not isinstance(kind, str) or references is None:
        return None
    metadata, rule_set = content.get("metadata"), content.get("ruleSet")
    if not isinstance(metadata, dict | None) or not isinstance(rule_set, dict | None):
        return None
    schema = Schema(kind, text, references, metadata, rule_set)
    return Version(subject, number, schema_id, schema, deleted=bool(content.get("deleted")))


def references_of(rows: Iterable[Any]) -> tuple[Reference, ...] | None:
    """Parse references from JSON; None if one is invalid."""
    references = []
    for row in rows:
        names = row if isinstance(row, dict) else {}
        name, subject, version = names.get("name"), names.get("subject"), names.get("version")
        if not isinstance(name, str) or not isinstance(subject, str) or not isinstance(version, int):
            return None
        references.append(Reference(name, subject, version))
    return tuple(references)
