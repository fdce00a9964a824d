"""The tables of docs/releases.md, drawn from `broker/releases`."""

from broker.playing import versions_of
from broker.releases import NAMES, Behaviour, release
from broker.releases.defaults import DEFAULTS
from protocol.apis import ApiKey


def releases() -> str:
    """A row for each release."""
    rows = ["| release | recorded from | broker run | finalized features of a fresh cluster |", "|---|---|---|---|"]
    for name in NAMES:
        found = release(name)
        levels = ", ".join(f"{feature} {level}" for feature, level in sorted(found.levels.items())) or "-"
        rows.append(f"| {name} | {found.version} | {'yes' if found.run else 'no, its classes read'} | {levels} |")
    return "\n".join(rows)


def behaviours() -> str:
    """A row for each named behaviour, oldest first."""
    rows = ["| since | name | what brokers do since then |", "|---|---|---|"]
    rows += [f"| {each.since} | `{each.name}` | {each.text} |" for each in Behaviour]
    return "\n".join(rows)


def defaults() -> str:
    """A row for each default that changed."""
    rows = ["| setting | up to | was |", "|---|---|---|"]
    rows += [f"| `{setting}` | {last} | {text} |" for setting, old in DEFAULTS.items() for last, text in old.items()]
    return "\n".join(rows)


def apis() -> str:
    """For each API that is served, its ranges and the releases that brought them."""
    played = {name: versions_of(release(name)) for name in NAMES[:-1]}
    rows = ["| API | versions, by the first release that had them |", "|---|---|"]
    for key in played[NAMES[0]]:
        told, before = [], None
        for name in NAMES[:-1]:
            limits = played[name][key]
            if limits != before:
                told.append(f"{name}: {'-' if limits is None else f'{limits[0]}-{limits[1]}'}")
            before = limits
        newest = release(NAMES[-1]).apis.get(ApiKey(key).title)
        if newest != before:
            told.append(f"{NAMES[-1]}: {'-' if newest is None else f'{newest[0]}-{newest[1]}'}")
        rows.append(f"| {ApiKey(key).title} | {', '.join(told) or '-'} |")
    return "\n".join(rows)
