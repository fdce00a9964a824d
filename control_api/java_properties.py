"""Parses Java properties files, such as a broker's server.properties."""

import re
from typing import Final

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_BLANKS: Final = " \t\f"
"""The white space of Properties.load; other characters, such as U+2028, are part of a value."""
_TRIMMED: Final = "".join(map(chr, range(ord(" ") + 1)))
"""The characters that Kafka strips from both ends of a value (String.trim in ConfigDef.parseType)."""


def properties(text: str) -> dict[str, str]:
    r"""Parse java.util.Properties' format: `=`, `:` or blank after the key, `\` continues a line, # or ! comments."""
    values: dict[str, str] = {}
    lines = iter(_LINE_END.split(text))
    for first in lines:
        line = first.lstrip(_BLANKS)
        if not line or line[0] in "#!":
            continue
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + next(lines, "").lstrip(_BLANKS)
        key, value = split(line)
        values[unescape(key)] = unescape(value).strip(_TRIMMED)
    return values


def split(line: str) -> tuple[str, str]:
    """Split a line into key and value at the first unescaped separator."""
    position = 0
    while position < len(line) and line[position] not in f"=:{_BLANKS}":
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return line[:position], rest


def unescape(text: str) -> str:
    r"""Resolve Java's escapes: \t, \n, \r, \f, \uXXXX; any other escaped character is itself. Raises ValueError.

    Two escapes may form a surrogate pair; a lone surrogate stays unchanged.
    """
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        if letter != "\\":
            out.append(letter)
            position += 1
        elif text[position + 1 : position + 2] == "u":
            digits = text[position + 2 : position + 6]  # after \u, four of them
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                raise ValueError(f"\\u{digits}")
            out.append(chr(int(digits, 16)))
            position += 6
        else:
            following = text[position + 1 : position + 2]
            out.append({"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(following, following))
            position += 2
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
