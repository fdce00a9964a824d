"""Names and addresses in messages: suggestions for misspelt names, and escaping of control characters."""

from collections.abc import Iterable

_MOST_NAMED = 16  # names that fit on two lines; of more, the similar ones are named


def closest(misspelt: str, names: Iterable[str]) -> str | None:
    """Return the known name that is most similar, ignoring case, or ``None`` if none is similar."""
    import difflib  # noqa: PLC0415 - only for an error message

    by_case = {name.lower(): name for name in reversed(list(names))}
    matches = difflib.get_close_matches(misspelt.lower(), list(by_case), n=1, cutoff=0.6)  # the default of difflib
    return by_case[matches[0]] if matches else None


def hint(misspelt: str, names: Iterable[str]) -> str:
    """Return `` (did you mean X?)``, the end of a command line's error message; empty if no name is similar."""
    name = closest(misspelt, names)
    return f" (did you mean {name}?)" if name else ""


def suggestion(misspelt: str, names: Iterable[str]) -> str:
    """Return ``; did you mean X or Y?``, the end of a problem's detail; if none is similar, all names if they are few.

    Names that contain the misspelt one count as similar: FENCED suggests PRODUCER_FENCED.
    """
    candidates = list(names)
    nearest = closest(misspelt, candidates)
    alike = [name for name in candidates if nearest is not None and name.upper() == nearest.upper()]
    part = misspelt.upper()
    alike = alike or sorted((name for name in candidates if len(part) > 2 and part in name.upper()), key=len)
    if alike:
        # More would hardly be read.
        return f"; did you mean {' or '.join(alike[:3])}?"
    return f"; known: {', '.join(candidates)}" if 0 < len(candidates) <= _MOST_NAMED else ""


def plain(text: str) -> str:
    r"""Escape characters that are not printable, such as \x1b: names come from clients and may control a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def host_and_port(host: str, port: int) -> str:
    """Format an address for URLs and bootstrap.servers, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
