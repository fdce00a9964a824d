"""Converts the journals of failed tests (`--kafka-journal DIR` of the pytest fixture) to files of `serve --journal`.

Such a journal is a JSON array of the control plane's entries (`GET /v1/journal`), one file per test and cluster. It has
no batch headers, so i04 cannot compare the bytes of batches, nor i40 their counts.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pipeline import journal
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

_KEYS: Final = {key.title: int(key) for key in ApiKey}
_MARKS: Final = ("id", "ts_us", "api", "connection", "outcome", "request", "response")


def readable(path: str, scratch: Path) -> str:
    """Return the path of a journal's files: the given one, or a folder in `scratch` with converted journals.

    Raises:
        FileNotFoundError: there are neither.
    """
    try:
        journal.find_files(path)
    except FileNotFoundError:
        written = [_write(file, scratch) for file in _kept_files(path)]
        if not any(written):
            raise
        return str(scratch)
    return path


def _kept_files(path: str) -> list[Path]:
    local = Path(path)
    return sorted(local.glob("*.json")) if local.is_dir() else [local] if local.suffix == ".json" else []


def _write(file: Path, scratch: Path) -> bool:
    """Write the entries of one file as lines; return False if it has none."""
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        return False
    scratch.mkdir(parents=True, exist_ok=True)
    with (scratch / f"wire-{file.stem}-000001.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in _lines(file.stem, entries))
    return bool(entries)


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= {*_MARKS}


def _lines(run: str, entries: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in entries:
        if each["duration_ms"] is None:
            continue  # the request was being served
        software, _, version = (each["software"] or "").rpartition(" ")
        yield {
            "v": 1, "run": run, "era": 0, "id": each["id"], "lost": 0, "cluster_id": "", "ts_us": each["ts_us"],
            "duration_us": round(each["duration_ms"] * 1000), "at_ms": each["at_ms"], "broker": each["broker"],
            "listener": each["listener"], "connection": each["connection"], "client": each["client"], "principal": "",
            "client_id": each["client_id"], "software": software or None, "software_version": version or None,
            "api_key": _KEYS.get(each["api"], -1), "api": each["api"], "version": each["version"],
            "correlation_id": each["correlation_id"], "outcome": each["outcome"],
            "error_codes": [] if each["error"] is None else [int(ErrorCode[each["error"]])], "error": each["error"],
            "faults": each["fault"].split(",") if each["fault"] else [], "request_bytes": each["request_bytes"],
            "response_bytes": each["response_bytes"], "request": each["request"] or None, "response": each["response"],
        }  # fmt: skip
