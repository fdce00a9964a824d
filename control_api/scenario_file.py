"""Reads scenario files: steps that change a cluster, in order, as JSON. `ctl scenario record` writes them.

    {"scenario": 1, "about": "a commit whose answer is lost", "steps": [
      {"verb": "faults add", "arguments": {"api": "EndTxn", "apply_then": {"disconnect": "reset"}}},
      {"verb": "clock advance", "arguments": {"ms": 60000}}]}

Verbs are those of `understudy ctl`, arguments those of the Python client. The server checks both; this module checks
the format of the file and finds the line of each step, for messages.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

VERSION = 1
_MOST_BYTES = 8 * 1024 * 1024
"""The largest body that the control plane accepts (`broker.control.document.MOST_BYTES`)."""
_SUCH = '{"verb": "faults add", "arguments": {"api": "EndTxn", "error": "NOT_COORDINATOR"}}'


class ScenarioError(Exception):
    """An unusable scenario file; the message is one sentence with the line and the remedy."""


class Scenario(NamedTuple):
    """The steps of a file, and the line on which each begins."""

    path: str
    steps: list[dict[str, Any]]
    lines: list[int]


def read(path: str) -> Scenario:
    """Read the steps of a file. Raises ScenarioError."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror or error}; give the file of a scenario") from None
    if len(raw) > _MOST_BYTES:
        raise ScenarioError(f"{path} is larger than {_MOST_BYTES} bytes; split it into several scenarios")
    try:
        return parse(path, raw.decode())
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def parse(path: str, text: str) -> Scenario:
    """Parse the text of a scenario file, or a list of steps. Raises ScenarioError."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: nested too deeply to be a scenario") from None
    except ValueError:
        raise ScenarioError(f"{path}: has a number of thousands of digits") from None
    if isinstance(document, list):
        text = f'{{"scenario": {VERSION}, "steps": {text}}}'
        document = {"scenario": VERSION, "steps": document}
    steps = _steps(path, document)
    lines = _lines(text, len(steps))
    for at, step in enumerate(steps):
        if not isinstance(step, dict) or not isinstance(step.get("verb"), str):
            raise ScenarioError(f'{path}, line {lines[at]}, step {at + 1}: needs a "verb", such as {_SUCH}')
    return Scenario(path, steps, lines)


def _steps(path: str, document: Any) -> list[Any]:
    if not isinstance(document, dict) or "steps" not in document:
        raise ScenarioError(f'{path}: needs an object with "steps", such as {{"scenario": 1, "steps": [{_SUCH}]}}')
    if document.get("scenario") != VERSION:
        version = json.dumps(document.get("scenario"))
        raise ScenarioError(f'{path}: needs "scenario": {VERSION}, not {version}; this release reads version {VERSION}')
    steps = document["steps"]
    if not isinstance(steps, list):
        raise ScenarioError(f'{path}: "steps" needs a list of steps such as {_SUCH}')
    return steps


def _lines(text: str, count: int) -> list[int]:
    """Return the line on which each step begins, in one pass, since the text may be large."""
    decode = json.JSONDecoder().raw_decode
    at = _value_of_steps(text, decode) + 1
    lines, line, counted = [], 1, 0
    for _ in range(count):
        while text[at] in " \t\r\n,":
            at += 1
        line += text.count("\n", counted, at)
        counted = at
        lines.append(line)
        _, at = decode(text, at)
    return lines


def _value_of_steps(text: str, decode: Any) -> int:
    """Return the position of the list of steps in a JSON object; with duplicates the last one, which counts."""
    at, last_key_at = text.index("{") + 1, -1
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "}":
            return last_key_at
        name, at = decode(text, at)
        while text[at] in " \t\r\n:":
            at += 1
        last_key_at = at if name == "steps" else last_key_at
        _, at = decode(text, at)
