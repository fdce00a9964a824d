"""Parses a Dockerfile: instructions in order, continued lines joined. For the rehearsal and the lint."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: its keyword in capitals, its flags (`--from=build`), the rest as written."""

    line: int
    keyword: str
    flags: tuple[str, ...]
    rest: str

    @property
    def argv(self) -> list[str] | None:
        """Return the arguments of the exec form (a JSON array), None for the shell form."""
        arguments: list[str] | None = json.loads(self.rest) if self.rest.startswith("[") else None
        return arguments

    def flag(self, name: str) -> str | None:
        """Return the value of a flag."""
        return next((flag.partition("=")[2] for flag in self.flags if flag.startswith(f"--{name}=")), None)


def read(path: Path) -> list[Instruction]:
    """Read the instructions of a file."""
    instructions: list[Instruction] = []
    pending, began = "", 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        began = began if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1].rstrip() + " "
            continue
        instructions.append(instruction(pending, began))
        pending = ""
    return instructions


def instruction(text: str, line: int) -> Instruction:
    """Parse one instruction from its joined lines."""
    keyword, _, rest = text.partition(" ")
    flags = []
    while match := re.match(r"(--\S+)\s+", rest):
        flags.append(match[1])
        rest = rest[match.end() :]
    return Instruction(line, keyword.upper(), tuple(flags), rest.strip())


def variables(rest: str) -> dict[str, str]:
    """Parse the variables of ENV."""
    pairs = (pair.partition("=") for pair in shlex.split(rest))
    return {name: value for name, _, value in pairs}
