"""Generates the tables of docs/releases.md from `broker/releases`."""

from broker.cluster.emulation import listed_range, versions_of
from broker.handlers import APIS
from broker.releases import NAMES, Behaviour, release
from broker.releases.defaults import DEFAULTS


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
    """Return a row for each default that changed."""
    rows = ["| setting | up to | was |", "|---|---|---|"]
    rows += [f"| `{setting}` | {last} | {text} |" for setting, old in DEFAULTS.items() for last, text in old.items()]
    return "\n".join(rows)


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
