"""How brokers of each release describe all their settings, and a topic's: recorded once, compared with Understudy.

    python -m tests.releases.described [RELEASE ...]      (all that run here)

`described.json` has a row for each setting: under a release what it was described as first, and so in all later ones up
to the next release in the row; null where it is gone. Values that depend on the machine are not in it.
"""

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protocol.apis import ApiKey
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.releases.asking import Client
from tests.releases.recording import RUN
from tools.compact_json import dumps
from tools.old_kafka import running

DESCRIBED = Path(__file__).with_name("described.json")
BROKER, TOPIC = 4, 2
STATIC = 4
Described = dict[str, str]
"""`broker NAME` or `topic NAME` -> value, type, whether it is fixed, source and synonyms, as text."""


def describe(client: Client, kind: int, name: str) -> Described:
    """All settings of one resource but those that the command line or the file of the broker sets."""
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], include_synonyms=True)
    version = client.version(ApiKey.DESCRIBE_CONFIGS)
    configs = client.ask(ApiKey.DESCRIBE_CONFIGS, request).results[0].configs
    prefix = {BROKER: "broker", TOPIC: "topic"}[kind]
    return {f"{prefix} {each.name}": _text(each, version) for each in configs if not _is_set(each, version)}


def _is_set(config: Any, version: int) -> bool:
    if version == 0:
        return config.is_default is False
    return config.config_source == STATIC or any(each.source == STATIC for each in config.synonyms)


def _text(config: Any, version: int) -> str:
    parts = [f"{config.value!r}", "fixed" if config.read_only else "alterable"]
    if config.is_sensitive:
        parts.append("secret")
    if version >= 1:
        parts.append(f"source {config.config_source}")
        parts += [f"{each.name}={each.value!r} {each.source}" for each in config.synonyms]
    if version >= 3:
        parts.append(f"type {config.config_type}")
    return ", ".join(parts)


def describe_all(address: str) -> Described:
    """Of a broker with id 1, and of a new topic."""
    client = Client(address, 20)
    with contextlib.closing(client.wire):
        return {**describe(client, BROKER, "1"), **describe(client, TOPIC, client.topic())}


def load() -> dict[str, Described]:
    """Release -> setting -> description."""
    rows: dict[str, dict[str, str | None]] = json.loads(DESCRIBED.read_text()) if DESCRIBED.exists() else {}
    return {name: described_in(rows, name) for name in RUN}


def described_in(rows: Mapping[str, Mapping[str, str | None]], name: str) -> Described:
    """How one release describes its settings."""
    described: Described = {}
    for setting, row in rows.items():
        since = [each for each in RUN[: RUN.index(name) + 1] if each in row]
        if since and (text := row[since[-1]]) is not None:
            described[setting] = text
    return described


def save(described: Mapping[str, Described]) -> None:
    """Write the changes alone."""
    rows: dict[str, dict[str, str | None]] = {}
    for setting in sorted({each for settings in described.values() for each in settings}):
        before = None
        for name in RUN:
            text = described.get(name, {}).get(setting)
            if text != before:
                rows.setdefault(setting, {})[name] = before = text
    DESCRIBED.write_text(dumps(rows), encoding="utf-8")


def main() -> None:
    """Ask the releases that are named, or all."""
    known = load()
    for name in sys.argv[1:] or RUN:
        with running(name) as address:
            known[name] = describe_all(address)
        sys.stderr.write(f"{name}: {len(known[name])} settings\n")
        save(known)


if __name__ == "__main__":
    main()
