"""The settings that a release defined differently from the newest one, from `settings.json`.

The table is recorded from the releases' own classes by `tools/record_settings.py`, and holds only changes. It is read
when an older release is emulated or looked up.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Definition", "definitions_of", "known_versions", "rows"]


class Definition(NamedTuple):
    """A setting as one release defines it.

    Attributes:
        type: the name of its ConfigDef.Type.
        default: as text; ``None``: null, or no default.
        check: the text that the validator prints; ``None``: no validator. `versions up to X` is that of message
            formats.
        mode: `fixed`, `cluster` or `broker`: whether and where a broker's setting may change at run time.
        internal: whether DescribeConfigs omits it.
        known: whether the release had it; if not, the definition is the first later one.
    """

    type: str
    default: str | None
    check: str | None
    mode: str
    internal: bool
    known: bool = True


@cache
def rows() -> Mapping[str, Mapping[str, Definition | None]]:
    """Return `broker NAME`, `topic NAME`, `group NAME` -> release -> definition from then on; ``None``: removed."""
    return {
        setting: {release: _definition(printed) for release, printed in row.items()}
        for setting, row in _table()["settings"].items()
    }


def known_versions() -> Sequence[str]:
    """Return all valid values of message format and inter-broker protocol settings, oldest first."""
    versions: Sequence[str] = _table()["versions"]
    return versions


def definitions_of(release: str, names: Sequence[str]) -> dict[str, Definition]:
    """Return the settings that a release of `names` defined differently from the last one, or did not have yet."""
    releases = names[: names.index(release) + 1]
    definitions = {}
    for setting, row in rows().items():
        at_release, today = _latest(row, releases), _latest(row, names)
        if at_release is not None and at_release != today:
            definitions[setting] = at_release
        elif at_release is None and today is not None:
            first = next(definition for definition in row.values() if definition is not None)
            definitions[setting] = first._replace(known=False)
    return definitions


def _latest(row: Mapping[str, Definition | None], names: Sequence[str]) -> Definition | None:
    return next((row[release] for release in reversed(names) if release in row), None)


def _definition(printed: Sequence[Any] | None) -> Definition | None:
    if printed is None:
        return None
    type_name, default, check, mode, internal = printed
    return Definition(type_name, default, check, mode, internal is not None)


@cache
def _table() -> Any:
    return json.loads(Path(__file__).with_name("settings.json").read_text(encoding="ascii"))
