"""Names and addresses in texts: the nearest known name to a misspelt one, names without what a terminal obeys."""

from collections.abc import Iterable

_MOST_NAMED = 16


def closest(misspelt: str, names: Iterable[str]) -> str | None:
    """The known name that is most similar, ignoring case, or ``None`` if none is similar."""
    import difflib

    by_case = {name.lower(): name for name in reversed(list(names))}
    found = difflib.get_close_matches(misspelt.lower(), list(by_case), n=1, cutoff=0.6)
    return by_case[found[0]] if found else None


def hint(misspelt: str, names: Iterable[str]) -> str:
    """``(did you mean X?)`` with a blank before it, or nothing: the end of an error message of a command line."""
    found = closest(misspelt, names)
    return f" (did you mean {found}?)" if found else ""


def suggestion(misspelt: str, names: Iterable[str]) -> str:
    """``; did you mean X or Y?``, else all names if they are few: the end of a problem's detail.

    If no name is similar, those that contain it are suggested: FENCED means PRODUCER_FENCED.
    """
    known = list(names)
    found = closest(misspelt, known)
    alike = [name for name in known if found is not None and name.upper() == found.upper()]
    part = misspelt.upper()
    alike = alike or sorted((name for name in known if len(part) > 2 and part in name.upper()), key=len)
    if alike:
        return f"; did you mean {' or '.join(alike[:3])}?"
    return f"; known: {', '.join(known)}" if 0 < len(known) <= _MOST_NAMED else ""


def plain(text: str) -> str:
    r"""Names come from clients, and may hold what a terminal obeys; such characters are shown as \x1b and the like."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def host_and_port(host: str, port: int) -> str:
    """An address as URLs and bootstrap.servers have it: an IPv6 one in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
