"""Writes ``broker/settings/releases/settings.json``: settings that older releases of Kafka define in another way.

    python tools/record_settings.py

Read from the releases' own classes (`ReleaseSettings.java`). A row is a setting; under a release is its definition
since then: type, default, validator, update mode, and whether it is internal. null: it was removed. Settings that never
changed have no row. Takes a minute; needs a JDK and Maven.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.old_kafka import ROOT, VERSIONS, fetch

TARGET = ROOT / "broker" / "settings" / "releases" / "settings.json"
NULL = "\\N"
Definition = list[str | None]
"""Type, default, validator, update mode, and "internal" or null."""
Settings = dict[str, Definition]
"""By `broker NAME`, `topic NAME`, `group NAME`."""

VERSIONS_OF_KAFKA = "[0.8.0, "
"""Text of the message format validator: all releases up to its own, which the table has only once."""


def read(release: str) -> Settings:
    """Return the settings that a release's classes define."""
    command = ["java", "-cp", f"{fetch(release)}/*", str(ROOT / "tools" / "ReleaseSettings.java")]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    definitions: Settings = {}
    for line in text.splitlines():
        kind, name, type_name, default, validator, internal, mode = line.split("\t")
        hidden = "internal" if internal == "true" else None
        check = None if validator == NULL else validator
        definitions[f"{kind} {name}"] = [type_name, None if default == NULL else default, check, mode, hidden]
    return definitions


def changes(every: Mapping[str, Settings]) -> dict[str, dict[str, Definition | None]]:
    """Return the rows: each setting's definitions by the release that introduced them, if there is more than one."""
    rows: dict[str, dict[str, Definition | None]] = {}
    for setting in sorted({each for settings in every.values() for each in settings}):
        row: dict[str, Definition | None] = {}
        before: Definition | None = None
        for release, settings in every.items():
            if settings.get(setting) != before:
                row[release] = before = settings.get(setting)
        if list(row) != list(every)[:1]:
            rows[setting] = row
    return rows


def shared_versions(every: Mapping[str, Settings]) -> list[str]:
    """Replace each list of releases by `versions up to X`; return the longest."""
    longest: Sequence[str] = ()
    for settings in every.values():
        for definition in settings.values():
            check = definition[2]
            if check is not None and check.startswith(VERSIONS_OF_KAFKA):
                versions = check.strip("[]").split(", ")
                longest = max(longest, versions, key=len)
                definition[2] = f"versions up to {versions[-1]}"
    return list(longest)


def main() -> None:
    """Record all releases."""
    every = {}
    for release in VERSIONS:
        every[release] = read(release)
        sys.stderr.write(f"{release}: {len(every[release])} settings\n")
    versions = json.dumps(shared_versions(every))
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in changes(every).items())
    TARGET.write_text(f'{{\n "versions": {versions},\n "settings": {{\n{rows}\n }}\n}}\n', encoding="ascii")


if __name__ == "__main__":
    main()
