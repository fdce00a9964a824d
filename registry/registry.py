"""Operations of the registry: registrations, lookups, deletions, settings and modes, with Confluent's order of checks.

An operation reads the state and appends its records without another write in between (`_writing`). It stores nothing
else: the state is the replay of the topic.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from registry import records
from registry.compatibility import Older, compared, level_named, problems
from registry.errors import (
    RegistryError,
    incompatible,
    invalid_schema,
    is_referenced,
    no_subject,
    no_version,
    not_permitted,
    subject_deleted,
    subject_not_deleted,
    version_deleted,
    version_not_deleted,
)
from registry.formats import ParsedSchema
from registry.levels import DEFAULT
from registry.names import DEFAULT_CONTEXT, context_of, matches, prefix_of
from registry.reading import Reader, pinned
from registry.records import Json
from registry.state import Schema, State, Version
from registry.store import Store

READWRITE, READONLY, READONLY_OVERRIDE, IMPORT = "READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"
MODES = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT)
LATEST = -1


class Registry:
    """The registry of one cluster."""

    def __init__(self, store: Store, cluster_id: str) -> None:
        self._store, self.cluster_id = store, cluster_id
        self._reader = Reader()
        self._writing = anyio.Lock()

    @property
    def state(self) -> State:
        """Current state of the registry."""
        return self._store.state()

    # --- effective settings ------------------------------------------------------------------------------------------

    def config(self, subject: str | None, *, scope: bool) -> Json | None:
        """Return the settings of a subject; with ``scope``, if it has none, those of its context or the default."""
        configs = self.state.configs
        if not scope:
            return configs.get(subject) or ({"compatibilityLevel": DEFAULT} if subject is None else None)
        config = {"compatibilityLevel": DEFAULT}
        for scope_name in _scopes(subject):
            config |= configs.get(scope_name, {})
        return config

    def mode(self, subject: str | None, *, scope: bool) -> str | None:
        """Return the mode of a subject; a global READONLY_OVERRIDE takes precedence."""
        modes = self.state.modes
        if modes.get(None) == READONLY_OVERRIDE:
            return READONLY_OVERRIDE
        if not scope:
            return modes.get(subject) or (READWRITE if subject is None else None)
        mode = READWRITE
        for scope_name in _scopes(subject):
            mode = modes.get(scope_name, mode)
        return mode

    def _check_writable(self, subject: str | None) -> None:
        if self.mode(subject, scope=True) in {READONLY, READONLY_OVERRIDE}:
            raise not_permitted(f"Subject {subject} in context {context_of(subject)} is in read-only mode")

    # --- schemas -----------------------------------------------------------------------------------------------------

    async def register(
        self, subject: str, schema: Schema, *, schema_id: int | None, version: int | None, normalize: bool
    ) -> int:
        """Register a schema under a subject; return its id. If the subject has the schema, this works in any mode.

        Raises:
            RegistryError: 42205 because of the mode, 42201 for an invalid schema, 409 for an incompatible one, 50001
                and 50002 if it cannot be written.
        """
        if schema.text.strip():
            registered = (
                await self.lookup(subject, schema, normalize=normalize, deleted=False) if version is None else None
            )
            if registered is not None and schema_id in {None, registered.id}:
                return registered.id
            self._check_registration(subject, schema_id)
            # Parsed before the lock is taken, and cached, so that a long schema does not block other writers.
            await self._read(subject, schema, normalize=normalize, is_new=schema_id is None)
        async with self._writing:
            return await self._register(subject, schema, schema_id, version, normalize=normalize)

    async def _register(
        self, subject: str, schema: Schema, schema_id: int | None, version: int | None, *, normalize: bool
    ) -> int:
        self._check_registration(subject, schema_id)
        mode, context = self.mode(subject, scope=True), context_of(subject)
        live = self.state.versions(subject)
        if not schema.text.strip():
            if not live or mode == IMPORT:
                raise invalid_schema("Empty schema")
            newest = live[-1].schema
            schema = replace(newest, metadata=schema.metadata, rule_set=schema.rule_set)
        if live and mode != IMPORT:
            schema = _inheriting(schema, live[-1].schema)
        schema, parsed = await self._read(subject, schema, normalize=normalize, is_new=schema_id is None)
        known_id = self.state.id_of(context, schema)
        if known_id is not None and (schema_id is None or schema_id == known_id):
            if version is None and any(existing.id == known_id for existing in live):
                return known_id
            schema_id = known_id
        if mode != IMPORT:
            incompatibilities = await self._problems(subject, schema, parsed, live)
            if incompatibilities:
                raise incompatible(subject, f"[{', '.join(incompatibilities)}]")
        return await self._write(subject, schema, schema_id, version)

    def _check_registration(self, subject: str, schema_id: int | None) -> None:
        self._check_writable(subject)
        mode, context = self.mode(subject, scope=True), context_of(subject)
        if schema_id is not None and mode != IMPORT:
            raise not_permitted(f"Subject {subject} in context {context} is not in import mode")
        if schema_id is None and mode != READWRITE:
            raise not_permitted(f"Subject {subject} in context {context} is not in read-write mode")

    async def _read(
        self, subject: str, schema: Schema, *, normalize: bool, is_new: bool = False
    ) -> tuple[Schema, ParsedSchema]:
        """Return a schema as it would be stored under the subject, and parsed. Raises RegistryError 42201."""
        context = context_of(subject)
        schema = pinned(schema, self.state, context)
        normalize = normalize or bool((self.config(subject, scope=True) or {}).get("normalize"))
        parsed = await self._reader.read(schema, self.state, context, normalize=normalize, is_new=is_new)
        return replace(schema, text=parsed.text), parsed

    async def _problems(self, subject: str, schema: Schema, parsed: ParsedSchema, live: list[Version]) -> list[str]:
        """List the incompatibilities of a schema with these versions at the subject's level."""
        settings = self.config(subject, scope=True) or {}
        level, group = str(settings["compatibilityLevel"]), settings.get("compatibilityGroup")
        if isinstance(group, str):
            live = [version for version in live if version.schema.properties.get(group) == schema.properties.get(group)]
        older = []
        for version in compared(level, live):
            before = None
            if version.schema.type == schema.type:
                before = await self._reader.read(version.schema, self.state, context_of(subject), normalize=False)
            older.append(Older(version.version, version.schema.type, before))
        return await self._reader.compare(schema, lambda: problems(level, schema.type, parsed, older))

    async def _write(self, subject: str, schema: Schema, schema_id: int | None, version: int | None) -> int:
        """Write a schema with its version and, unless it has one, a new id; return the id."""
        state, context = self.state, context_of(subject)
        every = state.versions(subject, deleted=True)
        following = max((existing.version for existing in every), default=0) + 1
        if version is not None and version != following and self.mode(subject, scope=True) != IMPORT:
            raise invalid_schema("Version is not one more than previous version")
        number = version or following
        if schema_id is None:
            schema_id = state.newest_ids.get(context, 0) + 1
        elif any(existing.schema.identity != schema.identity for existing in state.by_id(context, schema_id)):
            raise not_permitted(f"Overwrite new schema with id {schema_id} in context {context} is not permitted.")
        rows: records.Rows = []
        if context != DEFAULT_CONTEXT and context not in state.contexts:
            content = {"tenant": "default", "context": context}
            rows.append((records.context_key(context), records.value_of(content)))
        gone = [
            existing
            for existing in every
            if existing.deleted and existing.id == schema_id and existing.version < number
        ]
        rows += [(records.schema_key(subject, existing.version), None) for existing in gone]
        written = Version(subject, number, schema_id, schema)
        rows.append((records.schema_key(subject, number), records.value_of(written.value())))
        await self._store.append(rows)
        return schema_id

    async def lookup(self, subject: str, schema: Schema, *, normalize: bool, deleted: bool) -> Version | None:
        """Return the subject's version with this schema, or None. Raises RegistryError 42201."""
        schema, parsed = await self._read(subject, schema, normalize=normalize)
        versions = self.state.versions(subject, deleted=deleted)
        same = [version for version in versions if version.schema.identity == schema.identity]
        if not same and versions:
            schema = _inheriting(schema, versions[-1].schema)
            same = [version for version in versions if version.schema.identity == schema.identity]
        return same[-1] if same else await self._inlined(schema, parsed, versions)

    async def _inlined(self, schema: Schema, parsed: ParsedSchema, versions: list[Version]) -> Version | None:
        """Return the newest version that equals a schema without references once its own references are inlined."""
        for version in () if schema.references or schema.type != "AVRO" else reversed(versions):
            other = version.schema
            alike = (other.type, other.metadata, other.rule_set) == (schema.type, schema.metadata, schema.rule_set)
            if other.references and alike:
                before = await self._reader.read(other, self.state, context_of(version.subject), normalize=False)
                if await self._reader.compare(schema, partial(parsed.same_as, before)):
                    return version
        return None

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version:
        """Return a version of a subject, else of that name in another context; LATEST: the newest that is not deleted.

        Raises:
            RegistryError: 40401 or 40402.
        """
        for place in self.state.places(subject):
            versions = self.state.versions(place, deleted=deleted and number != LATEST)
            same = [version for version in versions if number in {LATEST, version.version}]
            if same:
                return same[-1]
        raise no_version(number) if self.state.versions(subject, deleted=deleted) else no_subject(subject)

    async def compatible(
        self, subject: str, schema: Schema, number: int | None, *, normalize: bool
    ) -> tuple[bool, list[str]]:
        """Check whether a schema is compatible with a version; return the result and the incompatibilities.

        ``number`` None: with the versions that the level determines.

        Raises:
            RegistryError: 40402 for a version that does not exist, 42201 for an invalid schema.
        """
        live = self.state.versions(subject)
        if number == LATEST:
            live = live[-1:]
        elif number is not None:
            live = [version for version in live if version.version == number]
            if not live:
                raise no_version(number)
        if not schema.text.strip():
            raise invalid_schema("Empty schema")
        schema, parsed = await self._read(subject, schema, normalize=normalize, is_new=True)
        incompatibilities = await self._problems(subject, schema, parsed, live)
        return not incompatibilities, incompatibilities

    async def text(self, version: Version, format: str) -> str:
        """Return the text of a version, in a format given by the query parameter `format`."""
        if not format:
            return version.schema.text
        parsed = await self._reader.read(version.schema, self.state, context_of(version.subject), normalize=False)
        return parsed.formatted(format)

    # --- deletions ---------------------------------------------------------------------------------------------------

    async def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete a subject, first softly, then permanently; return its versions. Raises RegistryError."""
        async with self._writing:
            state = self.state
            every, live = state.versions(subject, deleted=True), state.versions(subject)
            if not every:
                raise no_subject(subject)
            if not permanent and not live:
                raise subject_deleted(subject)
            self._check_writable(subject)
            doomed = every if permanent else live
            for version in doomed:
                if state.referring(subject, version.version):
                    raise is_referenced(subject, version.version)
                if permanent and not version.deleted:
                    raise subject_not_deleted(subject)
            if permanent:
                rows = _tombstones(doomed)
            else:
                content = {"subject": subject, "version": doomed[-1].version}
                rows = [(records.delete_subject_key(subject), records.value_of(content)), *self._settings_of(subject)]
            await self._store.append(rows)
            return [version.version for version in doomed]

    async def delete_version(self, subject: str, number: int, *, permanent: bool) -> int:
        """Delete a version, first softly, then permanently; return its number. Raises RegistryError."""
        async with self._writing:
            state = self.state
            every, live = state.versions(subject, deleted=True), state.versions(subject)
            matching = [
                version for version in (live if number == LATEST else every) if number in {LATEST, version.version}
            ]
            if not matching:
                raise no_version(number) if every else no_subject(subject)
            version = matching[-1]
            if not permanent and version.deleted:
                raise version_deleted(subject, version.version)
            self._check_writable(subject)
            if state.referring(subject, version.version):
                raise is_referenced(subject, version.version)
            if permanent and not version.deleted:
                raise version_not_deleted(subject, version.version)
            if permanent:
                await self._store.append(_tombstones([version]))
            else:
                value = records.value_of(replace(version, deleted=True).value())
                rows: records.Rows = [(records.schema_key(subject, version.version), value)]
                await self._store.append([*rows, *(self._settings_of(subject) if len(live) == 1 else ())])
            return version.version

    def _settings_of(self, subject: str) -> records.Rows:
        """Return tombstones for a subject's mode and settings, which are deleted with its last version."""
        state = self.state
        rows: records.Rows = [(records.mode_key(subject), None)] if subject in state.modes else []
        return [*rows, *([(records.config_key(subject), None)] if subject in state.configs else [])]

    # --- settings and modes ------------------------------------------------------------------------------------------

    async def set_config(self, subject: str | None, changes: Mapping[str, Any]) -> None:
        """Change some settings of a subject, or global ones. Raises RegistryError 42203 or 42205."""
        async with self._writing:
            self._check_writable(subject)
            content = dict(self.state.configs.get(subject, {}))
            for name, value in changes.items():
                if name == "compatibility":
                    content["compatibilityLevel"] = level_named(value)
                else:
                    content[name] = value
            about = {} if subject is None else {"subject": subject}
            await self._store.append([(records.config_key(subject), records.value_of({**about, **content}))])

    async def delete_config(self, subject: str | None) -> Json:
        """Delete the settings of a subject, or global ones; return them. Raises RegistryError 40401 or 42205."""
        async with self._writing:
            old = self.config(subject, scope=False)
            if old is None:
                raise no_subject(str(subject))
            self._check_writable(subject)
            await self._store.append([(records.config_key(subject), None)])
            return old

    async def set_mode(self, subject: str | None, mode: object, *, force: bool) -> str:
        """Change the mode of a subject, or the global one. Raises RegistryError 42204, 42205 or 42206."""
        if not isinstance(mode, str) or mode.upper() not in MODES:
            raise RegistryError(42204, f"Invalid mode. Valid values are {', '.join(MODES)}")
        async with self._writing:
            mode = mode.upper()
            rows: records.Rows = []
            if mode == IMPORT and not force and self.mode(subject, scope=True) != IMPORT:
                rows = self._emptied(subject)
            about = {} if subject is None else {"subject": subject}
            value = records.value_of({**about, "mode": mode})
            await self._store.append([*rows, (records.mode_key(subject), value)])
            return mode

    def _emptied(self, subject: str | None) -> records.Rows:
        """Return tombstones of soft-deleted versions, since an import begins without any. Raises RegistryError."""
        state = self.state
        every = [version for version in state.all_versions() if matches(subject, version.subject)]
        if not all(version.deleted for version in every):
            raise not_permitted("Cannot import since found existing subjects")
        referenced = state.referenced()
        for version in every:
            if (version.subject, version.version) in referenced:
                raise is_referenced(version.subject, version.version)
        return _tombstones(every)

    async def delete_mode(self, subject: str | None) -> str:
        """Delete the mode of a subject; return the old one. Raises RegistryError 40401."""
        async with self._writing:
            old = self.mode(subject, scope=False)
            if old is None:
                raise no_subject(str(subject))
            await self._store.append([(records.mode_key(subject), None)])
            return old


def _tombstones(versions: list[Version]) -> records.Rows:
    return [(records.schema_key(version.subject, version.version), None) for version in versions]


def _inheriting(schema: Schema, newest: Schema) -> Schema:
    """Return a schema with the metadata and rules of the newest version, unless it has its own."""
    return replace(schema, metadata=schema.metadata or newest.metadata, rule_set=schema.rule_set or newest.rule_set)


def _scopes(subject: str | None) -> list[str | None]:
    """List the scopes of effective settings, the weakest first: the context, then the subject.

    Settings without a subject belong to the default context only.
    """
    context = context_of(subject)
    context_scope = None if context == DEFAULT_CONTEXT else prefix_of(context)
    return [context_scope, *([] if subject is None else [subject])]
