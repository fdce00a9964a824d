"""Reads a Dockerfile: instructions in order, continued lines joined. For the rehearsal and for the lint."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its word in capitals, its flags (`--from=build`), the rest as written."""

    line: int
    word: str
    flags: tuple[str, ...]
    rest: str

    @property
    def argv(self) -> list[str] | None:
        """The words of the exec form (a JSON array), None for the shell form."""
        words: list[str] | None = json.loads(self.rest) if self.rest.startswith("[") else None
        return words

    def flag(self, name: str) -> str | None:
        """The value of a flag."""
        return next((flag.partition("=")[2] for flag in self.flags if flag.startswith(f"--{name}=")), None)


def read(path: Path) -> list[Instruction]:
    """The instructions of a file."""
    found: list[Instruction] = []
    pending, began = "", 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        began = began if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1].rstrip() + " "
            continue
        found.append(instruction(pending, began))
        pending = ""
    return found


def instruction(text: str, line: int) -> Instruction:
    """One instruction out of its joined lines."""
    word, _, rest = text.partition(" ")
    flags = []
    while found := re.match(r"(--\S+)\s+", rest):
        flags.append(found[1])
        rest = rest[found.end() :]
    return Instruction(line, word.upper(), tuple(flags), rest.strip())


def variables(rest: str) -> dict[str, str]:
    """What ENV sets."""
    pairs = (pair.partition("=") for pair in shlex.split(rest))
    return {name: value for name, _, value in pairs}
