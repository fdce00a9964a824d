"""Generates tables of docs/old-releases.md and docs/inside/releases.md from `broker/settings/releases`."""

from collections.abc import Callable, Mapping

from broker.cluster.emulation import listed_range, versions_of
from broker.handlers import APIS
from broker.settings.releases import NAMES, Behaviour, release
from broker.settings.releases.definitions import Definition, rows
from broker.settings.tables import BROKER, TOPIC


def releases() -> str:
    """Return a row for each release."""
    rows = ["| release | recorded from | broker run | finalized features of a fresh cluster |", "|---|---|---|---|"]
    for name in NAMES:
        facts = release(name)
        levels = ", ".join(f"{feature} {level}" for feature, level in sorted(facts.levels.items())) or "-"
        rows.append(f"| {name} | {facts.version} | {'yes' if facts.run else 'no, its classes read'} | {levels} |")
    return "\n".join(rows)


def behaviours() -> str:
    """Return a row for each named behaviour, oldest first."""
    rows = ["| since | name | what brokers do since then |", "|---|---|---|"]
    rows += [f"| {each.since} | `{each.name}` | {each.text} |" for each in Behaviour]
    return "\n".join(rows)


def defaults() -> str:
    """Return a row for each default of today's settings that changed."""
    lines = ["| setting | default, by the first release that had it |", "|---|---|"]
    for setting, row in rows().items():
        kind, _, name = setting.partition(" ")
        if kind == "broker" and name in BROKER:
            changes = _changes(row, lambda each: each.default)
            if len(changes) > 1:
                lines.append(f"| `{name}` | {', '.join(f'{since}: {_code(text)}' for since, text in changes)} |")
    return "\n".join(lines)


def removed() -> str:
    """Return a row for each setting that was removed."""
    lines = ["| setting | of | from | to | default |", "|---|---|---|---|---|"]
    for setting, row in rows().items():
        kind, _, name = setting.partition(" ")
        if kind == "group" or name in {"broker": BROKER, "topic": TOPIC}[kind] or list(row.values())[-1] is not None:
            continue
        since, last = next(iter(row)), NAMES[NAMES.index(list(row)[-1]) - 1]
        default = next(each for each in reversed(list(row.values())) if each is not None).default
        lines.append(f"| `{name}` | {kind} | {since} | {last} | {_code(default)} |")
    return "\n".join(lines)


def _code(text: str | None) -> str:
    return "null" if text is None else f"`{text}`" if text else "empty"


def _changes(
    row: Mapping[str, Definition | None], what: Callable[[Definition], str | None]
) -> list[tuple[str, str | None]]:
    since_values: list[tuple[str, str | None]] = []
    for since, each in row.items():
        if each is not None and (not since_values or since_values[-1][1] != what(each)):
            since_values.append((since, what(each)))
    return since_values


def apis() -> str:
    """Return, for each served API, its ranges and the releases that introduced them."""
    played = {name: versions_of(release(name)) for name in NAMES}
    rows = ["| API | versions, by the first release that had them |", "|---|---|"]
    for api in APIS:
        changes, before = [], None
        for name in NAMES:
            limits = played[name].get(api.key, listed_range(api) if api.listed else None)
            if limits != before:
                changes.append(f"{name}: {'-' if limits is None else f'{limits[0]}-{limits[1]}'}")
            before = limits
        rows.append(f"| {api.key.title} | {', '.join(changes) or '-'} |")
    return "\n".join(rows)
