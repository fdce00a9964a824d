"""Write ``broker/releases/table.json``: what each Kafka release advertises, as it says itself.

    python tools/record_releases.py [RELEASE ...]

Each release's own kafka-clients jar is asked for its table of APIs (Java reflection, `ReleaseFacts.java`). Then the
release's broker is started (`old_kafka.py`) and asked by ApiVersions: its answer wins, and its features are noted. A
release whose broker does not start here stands in the table as read, not run. Takes some minutes, a JDK and Maven.
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
from tools.old_kafka import ROOT, VERSIONS, fetch, has_zookeeper, running

TARGET = ROOT / "broker" / "releases" / "table.json"
BEFORE_API_VERSIONS_4 = b"\0\x23"  # UNSUPPORTED_VERSION
Ranges = dict[str, list[int]]


def read_jar(release: str) -> tuple[Ranges, int]:
    """The versions of each API that a broker of the release answers, by its own classes; and its last error code."""
    command = ["java", "-cp", f"{fetch(release)}/*", str(ROOT / "tools" / "ReleaseFacts.java")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    listener = "ZK_BROKER" if has_zookeeper(release) else "BROKER"
    ranges: Ranges = {}
    errors = 0
    for what, *words in map(str.split, lines):
        if what == "errors":
            errors = int(words[0])
        elif what == "api" and listener in words[3].strip("[]").split(",") and int(words[1]) <= int(words[2]):
            ranges[title(int(words[0]))] = [int(words[1]), int(words[2])]
    return ranges, errors


def title(key: int) -> str:
    """The API's name, or its number where it is one that this library does not know."""
    try:
        return ApiKey(key).title
    except ValueError:
        return str(key)


def ask(address: str) -> Any:
    """A running broker's answer to the newest ApiVersions that it knows."""
    host, _, port = address.rpartition(":")
    for version in (4, 3, 2, 0):
        with socket.create_connection((host, int(port)), 10) as connection, connection.makefile("rb") as stream:
            request = ApiVersionsRequest("understudy", "1")
            connection.sendall(encode_request(ApiKey.API_VERSIONS, version, 1, "record", request))
            (size,) = struct.unpack(">i", stream.read(4))
            frame = stream.read(size)
            if frame[4:6] != BEFORE_API_VERSIONS_4:
                return decode_response(ApiKey.API_VERSIONS, version, frame)[1]
    raise RuntimeError(f"{address} answers no ApiVersions")


def record(release: str) -> tuple[dict[str, Any], Ranges]:
    """One release's line in the table, and its ranges."""
    ranges, errors = read_jar(release)
    facts: dict[str, Any] = {"version": VERSIONS[release], "run": False, "last_error": errors}
    try:
        with running(release) as address:
            answer = ask(address)
    except RuntimeError as error:
        sys.stderr.write(f"{release}: read, not run: {error}\n")
        return facts, ranges
    told = {title(each.api_key): [each.min_version, each.max_version] for each in answer.api_keys}
    for name in sorted(ranges.keys() | told.keys()):
        if ranges.get(name) != told.get(name):
            sys.stderr.write(f"{release}: {name} is {ranges.get(name)} in its classes, {told.get(name)} on the wire\n")
    facts["run"] = True
    facts["supported"] = {each.name: [each.min_version, each.max_version] for each in answer.supported_features}
    facts["levels"] = {each.name: each.max_version_level for each in answer.finalized_features}
    if not facts["supported"]:
        facts["features_epoch"] = answer.finalized_features_epoch  # of ZooKeeper's node, which never changes
    return facts, told


def lines(releases: dict[str, dict[str, Any]], apis: dict[str, dict[str, list[int] | None]]) -> str:
    """The table as text: a line for each release and each API."""

    def block(name: str, rows: dict[str, Any]) -> str:
        return f' "{name}": {{\n' + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n }"

    return "{\n" + ",\n".join((block("releases", releases), block("apis", apis))) + "\n}\n"


def main() -> None:
    """Ask all releases, or some of them again."""
    wanted = sys.argv[1:] or list(VERSIONS)
    known = json.loads(TARGET.read_text()) if TARGET.exists() else {"releases": {}, "apis": {}}
    ranges = {release: ranges_of(known, release) for release in known["releases"]}
    for release in wanted:
        known["releases"][release], ranges[release] = record(release)
        sys.stderr.write(f"{release}: {'run' if known['releases'][release]['run'] else 'read'}\n")
    releases = {release: known["releases"][release] for release in VERSIONS if release in known["releases"]}
    TARGET.write_text(lines(releases, changes({release: ranges[release] for release in releases})))


def ranges_of(table: Any, release: str) -> Ranges:
    """One release's ranges out of the table, which has the changes alone."""
    found: Ranges = {}
    for api, told in table["apis"].items():
        for since, limits in told.items():
            if list(VERSIONS).index(since) <= list(VERSIONS).index(release):
                found[api] = limits
    return {api: limits for api, limits in found.items() if limits}


def changes(ranges: dict[str, Ranges]) -> dict[str, dict[str, list[int] | None]]:
    """For each API the releases that brought another range; null where it went."""
    names = {name for told in ranges.values() for name in told}
    keys = {key.title: int(key) for key in ApiKey}
    table: dict[str, dict[str, list[int] | None]] = {}
    for name in sorted(names, key=lambda each: keys.get(each) or int(each) if each not in keys else keys[each]):
        row: dict[str, list[int] | None] = {}
        before: list[int] | None = None
        for release, told in ranges.items():
            if told.get(name) != before:
                row[release] = before = told.get(name)
        table[name] = row
    return table


if __name__ == "__main__":
    main()
