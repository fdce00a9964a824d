"""Writes ``broker/settings/releases/table.json``: the API versions and features that each Kafka release advertises.

    python tools/record_releases.py [RELEASE ...]

The API table is read from each release's own kafka-clients jar (Java reflection, `ReleaseFacts.java`). Then the
release's broker is started (`old_kafka.py`); its ApiVersions response takes precedence and adds its features. A release
whose broker does not start here is marked as read, not run. Takes some minutes; needs a JDK and Maven.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request
from protocol.messages.api_versions import ApiVersionsRequest
from tools.compact_json import dumps
from tools.old_kafka import ROOT, VERSIONS, fetch, has_zookeeper, running

TARGET = ROOT / "broker" / "settings" / "releases" / "table.json"
BEFORE_API_VERSIONS_4 = b"\0\x23"  # UNSUPPORTED_VERSION
Ranges = dict[str, list[int]]


def read_jar(release: str) -> tuple[Ranges, int]:
    """Read the API versions of a release's broker listener, and its last error code, from its own classes."""
    command = ["java", "-cp", f"{fetch(release)}/*", str(ROOT / "tools" / "ReleaseFacts.java")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    listener = "ZK_BROKER" if has_zookeeper(release) else "BROKER"
    ranges: Ranges = {}
    errors = 0
    for what, *fields in map(str.split, lines):
        if what == "errors":
            errors = int(fields[0])
        elif what == "api" and listener in fields[3].strip("[]").split(",") and int(fields[1]) <= int(fields[2]):
            ranges[title(int(fields[0]))] = [int(fields[1]), int(fields[2])]
    return ranges, errors


def title(key: int) -> str:
    """Return the API's name, or its number if this library does not know it."""
    try:
        return ApiKey(key).title
    except ValueError:
        return str(key)


def ask(address: str) -> Any:
    """Request ApiVersions from a running broker, in the newest version that it supports."""
    host, _, port = address.rpartition(":")
    for version in (4, 3, 2, 0):
        with socket.create_connection((host, int(port)), 10) as connection, connection.makefile("rb") as stream:
            request = ApiVersionsRequest("understudy", "1")
            connection.sendall(encode_request(ApiKey.API_VERSIONS, version, 1, "record", request))
            (size,) = struct.unpack(">i", stream.read(4))
            frame = stream.read(size)
            if frame[4:6] != BEFORE_API_VERSIONS_4:
                return decode_response(ApiKey.API_VERSIONS, version, frame)[1]
    raise RuntimeError(f"{address} does not respond to ApiVersions")


def record(release: str) -> tuple[dict[str, Any], Ranges]:
    """Record one release: its line in the table, and its ranges."""
    ranges, errors = read_jar(release)
    facts: dict[str, Any] = {"version": VERSIONS[release], "run": False, "last_error": errors}
    try:
        with running(release) as address:
            answer = ask(address)
    except RuntimeError as error:
        sys.stderr.write(f"{release}: read, not run: {error}\n")
        return facts, ranges
    advertised = {title(each.api_key): [each.min_version, each.max_version] for each in answer.api_keys}
    for name in sorted(ranges.keys() | advertised.keys()):
        if ranges.get(name) != advertised.get(name):
            on_wire = advertised.get(name)
            sys.stderr.write(f"{release}: {name} is {ranges.get(name)} in its classes, {on_wire} on the wire\n")
    facts["run"] = True
    facts["supported"] = {each.name: [each.min_version, each.max_version] for each in answer.supported_features}
    facts["levels"] = {each.name: each.max_version_level for each in answer.finalized_features}
    if not facts["supported"]:
        facts["features_epoch"] = answer.finalized_features_epoch  # of ZooKeeper's node, which never changes
    return facts, advertised


def main() -> None:
    """Record all releases, or some of them again."""
    wanted = sys.argv[1:] or list(VERSIONS)
    known = json.loads(TARGET.read_text()) if TARGET.exists() else {"releases": {}, "apis": {}}
    ranges = {release: ranges_of(known, release) for release in known["releases"]}
    for release in wanted:
        known["releases"][release], ranges[release] = record(release)
        sys.stderr.write(f"{release}: {'run' if known['releases'][release]['run'] else 'read'}\n")
    releases = {release: known["releases"][release] for release in VERSIONS if release in known["releases"]}
    apis = changes({release: ranges[release] for release in releases})
    TARGET.write_text(dumps({"releases": releases, "apis": apis}, depth=2))


def ranges_of(table: Any, release: str) -> Ranges:
    """Return one release's ranges from the table, which only has changes."""
    ranges: Ranges = {}
    for api, by_release in table["apis"].items():
        for since, limits in by_release.items():
            if list(VERSIONS).index(since) <= list(VERSIONS).index(release):
                ranges[api] = limits
    return {api: limits for api, limits in ranges.items() if limits}


def changes(ranges: dict[str, Ranges]) -> dict[str, dict[str, list[int] | None]]:
    """Return the releases that changed each API's range; null where the API was removed."""
    names = {name for by_api in ranges.values() for name in by_api}
    keys = {key.title: int(key) for key in ApiKey}
    table: dict[str, dict[str, list[int] | None]] = {}
    for name in sorted(names, key=lambda each: keys.get(each) or int(each) if each not in keys else keys[each]):
        row: dict[str, list[int] | None] = {}
        before: list[int] | None = None
        for release, by_api in ranges.items():
            if by_api.get(name) != before:
                row[release] = before = by_api.get(name)
        table[name] = row
    return table


if __name__ == "__main__":
    main()
