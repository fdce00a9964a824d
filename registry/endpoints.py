"""The registry's paths, one function each, as in Confluent's REST reference."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from registry.errors import INVALID_SCHEMA, RegistryError, no_compatibility, no_mode, no_schema, no_subject
from registry.formats import TYPES
from registry.names import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    context_of,
    full_name,
    normal,
    prefix_of,
    qualified,
    unqualified,
)
from registry.records import Json
from registry.registry import Registry
from registry.request import Ask, schema_of
from registry.state import Version

T = TypeVar("T")
Answer = Callable[[Registry, Ask], Awaitable[Any]]
ROUTES: list[tuple[str, str, Answer]] = []
"""Method, path and function, in the order in which paths are matched."""
_CONFIG_FIELDS: dict[str, type] = {
    "compatibility": object, "alias": str, "compatibilityGroup": str, "compatibilityPolicy": str, "normalize": bool,
    "validateFields": bool, "validateRules": bool, "validateNames": bool, "defaultMetadata": dict,
    "overrideMetadata": dict, "defaultRuleSet": dict, "overrideRuleSet": dict,
}  # fmt: skip


class Raw:
    """Text that is the response body, unchanged."""

    def __init__(self, text: str) -> None:
        self.text = text


def serves(method: str, *paths: str) -> Callable[[Answer], Answer]:
    """Register a function for these paths."""

    def register(function: Answer) -> Answer:
        ROUTES.extend((method, path, function) for path in paths)
        return function

    return register


# --- subjects --------------------------------------------------------------------------------------------------------


@serves("GET", "/subjects")
async def subjects(registry: Registry, ask: Ask) -> list[str]:
    """List the subjects of all contexts, unless a context or a prefix is given."""
    prefix = _prefix(ask, ALL_CONTEXTS)
    subjects = []
    for name in sorted(registry.state.subjects):
        every = registry.state.versions(name, deleted=True)
        live = any(not version.deleted for version in every)
        if (not live if ask.flag("deletedOnly") else live or ask.flag("deleted")) and _within(name, prefix):
            subjects.append(name)
    return _page(subjects, ask)


@serves("POST", "/subjects/{subject}")
async def lookup(registry: Registry, ask: Ask) -> Json:
    """Return the subject's version with the schema of the body, else that of the same name in another context."""
    subject, deleted = ask.subject(), ask.flag("deleted")
    schema, _, _ = schema_of(await ask.body())
    for place in registry.state.places(subject):
        version = await registry.lookup(place, schema, normalize=ask.flag("normalize"), deleted=deleted)
        if version is not None:
            return await _document(registry, version, ask)
    raise no_schema() if registry.state.versions(subject, deleted=deleted) else no_subject(subject)


@serves("DELETE", "/subjects/{subject}")
async def delete_subject(registry: Registry, ask: Ask) -> list[int]:
    """Delete a subject; return its versions."""
    return await registry.delete_subject(ask.subject(), permanent=ask.flag("permanent"))


@serves("GET", "/subjects/{subject}/versions")
async def versions(registry: Registry, ask: Ask) -> list[int]:
    """List the version numbers of a subject."""
    subject, only = ask.subject(), ask.flag("deletedOnly")
    versions = registry.state.versions(subject, deleted=only or ask.flag("deleted"))
    if not versions:
        raise no_subject(subject)
    return _page([version.version for version in versions if version.deleted or not only], ask)


@serves("POST", "/subjects/{subject}/versions")
async def register(registry: Registry, ask: Ask) -> Json:
    """Register a schema; return its id."""
    subject = ask.subject()
    schema, schema_id, version = schema_of(await ask.body())
    registered_id = await registry.register(
        subject, schema, schema_id=schema_id, version=version, normalize=ask.flag("normalize")
    )
    return {"id": registered_id}


@serves("GET", "/subjects/{subject}/versions/{version}")
async def version(registry: Registry, ask: Ask) -> Json:
    """Return a version of a subject."""
    return await _document(registry, _version(registry, ask, deleted=ask.flag("deleted")), ask)


@serves("GET", "/subjects/{subject}/versions/{version}/schema")
async def version_text(registry: Registry, ask: Ask) -> Raw:
    """Return the schema text of a version."""
    version = _version(registry, ask, deleted=ask.flag("deleted"))
    return Raw(await registry.text(version, ask.text("format")))


@serves("GET", "/subjects/{subject}/versions/{version}/referencedby")
async def referenced_by(registry: Registry, ask: Ask) -> list[int]:
    """List the ids of the schemas that refer to a version."""
    version = _version(registry, ask, deleted=True)
    return sorted({referring.id for referring in registry.state.referring(version.subject, version.version)})


@serves("DELETE", "/subjects/{subject}/versions/{version}")
async def delete_version(registry: Registry, ask: Ask) -> int:
    """Delete a version; return its number."""
    return await registry.delete_version(ask.subject(), ask.version(), permanent=ask.flag("permanent"))


@serves("GET", "/subjects/{subject}/metadata")
async def newest_with_metadata(registry: Registry, ask: Ask) -> Json:
    """Return the newest version whose metadata has all key-value pairs of the query."""
    subject, query = ask.subject(), ask.request.query_params
    wanted = dict(zip(query.getlist("key"), query.getlist("value"), strict=False))
    versions = registry.state.versions(subject, deleted=ask.flag("deleted"))
    if not versions:
        raise no_subject(subject)
    for version in reversed(versions):
        if wanted.items() <= version.schema.properties.items():
            return await _document(registry, version, ask)
    raise no_schema()


# --- schemas ---------------------------------------------------------------------------------------------------------


@serves("GET", "/schemas")
async def schemas(registry: Registry, ask: Ask) -> list[Json]:
    """List the versions of the default context, unless a context or a prefix is given."""
    prefix, state = _prefix(ask, ""), registry.state
    names = [name for name in sorted(state.subjects) if _within(name, prefix)]
    versions = [state.versions(name, deleted=ask.flag("deleted")) for name in names]
    chosen = (of_subject[-1:] if ask.flag("latestOnly") else of_subject for of_subject in versions)
    return _page([version.document() for every in chosen for version in every], ask)


@serves("GET", "/schemas/types")
async def types(registry: Registry, ask: Ask) -> list[str]:
    """List the schema types."""
    del registry, ask
    return list(TYPES)


@serves("GET", "/schemas/ids/{id}")
async def by_id(registry: Registry, ask: Ask) -> Json:
    """Return the schema with an id."""
    version = _by_id(registry, ask)[0]
    answer = {**version.schema.fields(), "schema": await registry.text(version, ask.text("format"))}
    if ask.flag("fetchMaxId"):
        answer["maxId"] = registry.state.newest_ids.get(context_of(version.subject), 0)
    return answer


@serves("GET", "/schemas/ids/{id}/schema")
async def text_by_id(registry: Registry, ask: Ask) -> Raw:
    """Return the text of the schema with an id."""
    return Raw(await registry.text(_by_id(registry, ask)[0], ask.text("format")))


@serves("GET", "/schemas/ids/{id}/subjects")
async def subjects_by_id(registry: Registry, ask: Ask) -> list[str]:
    """List the subjects that have the schema with an id."""
    versions = [version for version in _by_id(registry, ask) if ask.flag("deleted") or not version.deleted]
    return list(dict.fromkeys(version.subject for version in versions))


@serves("GET", "/schemas/ids/{id}/versions")
async def versions_by_id(registry: Registry, ask: Ask) -> list[Json]:
    """List the versions that have the schema with an id."""
    versions = [version for version in _by_id(registry, ask) if ask.flag("deleted") or not version.deleted]
    return [{"subject": version.subject, "version": version.version} for version in versions]


# --- compatibility ---------------------------------------------------------------------------------------------------


@serves("POST", "/compatibility/subjects/{subject}/versions/{version}", "/compatibility/subjects/{subject}/versions")
async def compatibility(registry: Registry, ask: Ask) -> Json:
    """Check whether the schema of the body is compatible with a version, or with those that the level determines."""
    subject = ask.subject()
    number = ask.version() if "version" in ask.request.path_params else None
    schema, _, _ = schema_of(await ask.body())
    try:
        fits, why = await registry.compatible(subject, schema, number, normalize=ask.flag("normalize"))
    except RegistryError as error:
        if error.code != INVALID_SCHEMA or not ask.flag("verbose"):
            raise
        fits, why = False, [error.message]
    return {"is_compatible": fits, **({"messages": why} if ask.flag("verbose") else {})}


# --- settings and modes ----------------------------------------------------------------------------------------------


@serves("GET", "/config/{subject}", "/config")
async def config(registry: Registry, ask: Ask) -> Json:
    """Return the settings of a subject, or the global ones."""
    subject = _subject_or_all(ask)
    config = registry.config(subject, scope=ask.flag("defaultToGlobal"))
    if config is None:
        raise no_compatibility(str(subject))
    return config


@serves("PUT", "/config/{subject}", "/config")
async def set_config(registry: Registry, ask: Ask) -> Json:
    """Change settings of a subject, or global ones."""
    body = await ask.body()
    for name, value in body.items():
        if name not in _CONFIG_FIELDS:
            raise RegistryError(422, f"Unrecognized field: {name}")
        if value is not None and not isinstance(value, _CONFIG_FIELDS[name]):
            raise RegistryError(400, f"Unable to process JSON: {name} has a value of a wrong type")
    await registry.set_config(_subject_or_all(ask), body)
    return body


@serves("DELETE", "/config/{subject}", "/config")
async def delete_config(registry: Registry, ask: Ask) -> Json:
    """Delete the settings of a subject, or the global ones."""
    return await registry.delete_config(_subject_or_all(ask))


@serves("GET", "/mode/{subject}", "/mode")
async def mode(registry: Registry, ask: Ask) -> Json:
    """Return the mode of a subject, or the global one."""
    subject = _subject_or_all(ask)
    mode = registry.mode(subject, scope=ask.flag("defaultToGlobal"))
    if mode is None:
        raise no_mode(str(subject))
    return {"mode": mode}


@serves("PUT", "/mode/{subject}", "/mode")
async def set_mode(registry: Registry, ask: Ask) -> Json:
    """Change the mode of a subject, or the global one."""
    body = await ask.body()
    return {"mode": await registry.set_mode(_subject_or_all(ask), body.get("mode"), force=ask.flag("force"))}


@serves("DELETE", "/mode/{subject}", "/mode")
async def delete_mode(registry: Registry, ask: Ask) -> Json:
    """Delete the mode of a subject, or the global one."""
    return {"mode": await registry.delete_mode(_subject_or_all(ask))}


# --- the registry itself ---------------------------------------------------------------------------------------------


@serves("GET", "/contexts")
async def contexts(registry: Registry, ask: Ask) -> list[str]:
    """List the contexts."""
    return _page([DEFAULT_CONTEXT, *sorted(registry.state.contexts)], ask)


@serves("GET", "/")
async def root(registry: Registry, ask: Ask) -> Json:
    """Return an empty object: the registry is alive."""
    del registry, ask
    return {}


@serves("GET", "/v1/metadata/id")
async def server_id(registry: Registry, ask: Ask) -> Json:
    """Return the ids of cluster and registry."""
    del ask
    clusters = {"kafka-cluster": registry.cluster_id, "schema-registry-cluster": "schema-registry"}
    return {"id": "", "scope": {"path": [], "clusters": clusters}}


@serves("GET", "/v1/metadata/version")
async def server_version(registry: Registry, ask: Ask) -> Json:
    """Return the release of Confluent's registry that is emulated."""
    del registry, ask
    return {"version": "7.9.0", "commitId": "understudy"}


# --- parts of requests and responses ---------------------------------------------------------------------------------


def _subject_or_all(ask: Ask) -> str | None:
    """Return the subject in the path; without one the prefix of the path's context, None for the default context."""
    if "subject" in ask.request.path_params:
        return ask.subject()
    return prefix_of(ask.context) or None


def _version(registry: Registry, ask: Ask, *, deleted: bool) -> Version:
    return registry.version(ask.subject(), ask.version(), deleted=deleted)


def _by_id(registry: Registry, ask: Ask) -> list[Version]:
    """Return the versions with the id in the path, those of the query's subject first. Raises RegistryError 40403."""
    schema_id, state = ask.schema_id(), registry.state
    subject = full_name(ask.text("subject"), ask.context)
    for place in state.places(subject) if unqualified(subject) else ():
        versions = state.by_id(context_of(place), schema_id)
        in_place = [version for version in versions if version.subject == place]
        if in_place:
            return [*in_place, *(version for version in versions if version.subject != place)]
    versions = state.by_id(context_of(subject), schema_id)
    if not versions or (unqualified(subject) and context_of(subject) != DEFAULT_CONTEXT):
        raise no_schema(schema_id)
    return versions


async def _document(registry: Registry, version: Version, ask: Ask) -> Json:
    shown = version.document()
    return {**shown, "schema": await registry.text(version, ask.text("format"))} if ask.text("format") else shown


def _prefix(ask: Ask, default: str) -> str:
    """Return the prefix of the subjects to list."""
    if ask.context != DEFAULT_CONTEXT:
        return qualified(ask.text("subjectPrefix"), ask.context)
    return normal(ask.text("subjectPrefix", default))


def _within(subject: str, prefix: str) -> bool:
    """Whether a subject has a prefix, in the default context unless the prefix names one; `:*:` is any context."""
    if prefix.startswith(ALL_CONTEXTS):
        rest = prefix.removeprefix(ALL_CONTEXTS)
        return subject.startswith(rest) or subject.removeprefix(prefix_of(context_of(subject))).startswith(rest)
    within = context_of(prefix) != DEFAULT_CONTEXT or context_of(subject) == DEFAULT_CONTEXT
    return within and subject.startswith(prefix)


def _page(rows: Sequence[T], ask: Ask) -> list[T]:
    """Return the part of a list that `offset` and `limit` select; a limit of zero or less means no limit."""
    offset, limit = max(ask.number("offset", 0), 0), ask.number("limit", -1)
    return list(rows[offset:] if limit <= 0 else rows[offset : offset + limit])
