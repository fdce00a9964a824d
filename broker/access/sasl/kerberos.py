"""`sasl.kerberos.principal.to.local.rules`: maps a Kerberos principal to a user name (``KerberosShortNamer``)."""

import re
from collections.abc import Callable, Sequence

_RULE = re.compile(
    r"(?:(DEFAULT)|RULE:\[(\d*):([^\]]*)](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?/?(L|U)?)", re.DOTALL
)
_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_PARAMETER = re.compile(r"\$(\d*)")
_NOT_SIMPLE = re.compile(r"[/@]")
Rule = Callable[[list[str]], str | None]
"""Realm and parts of a principal -> the user name; ``None``: the rule does not apply."""


class BadRule(ValueError):
    """An invalid rule; the message is one sentence."""


class NoRule(Exception):
    """No rule applies to a principal."""


class KerberosNames:
    """The rules of a listener, in their order."""

    def __init__(self, rules: Sequence[str], default_realm: Callable[[], str]) -> None:
        """Parse the rules, such as `RULE:[1:$1@$0](.*@EXAMPLE.ORG)s/@.*//` and `DEFAULT`.

        Raises:
            BadRule: one is invalid.
        """
        self._rules = [_rule(text.strip(), default_realm) for text in rules or ("DEFAULT",)]

    def short_name(self, principal: str) -> str:
        """Map a principal to a user name. Raises NoRule."""
        parsed = _NAME.fullmatch(principal)
        if parsed is None:
            if "@" in principal:
                raise NoRule(f"Malformed Kerberos name: {principal}")
            return principal
        service, host, realm = parsed.groups()
        parts = [realm, service] if host is None else [realm, service, host]
        for rule in self._rules:
            name = rule(parts)
            if name is not None:
                return name
        raise NoRule(f"No rules apply to {principal}")


def _rule(text: str, default_realm: Callable[[], str]) -> Rule:
    parsed = _RULE.fullmatch(text)
    if parsed is None:
        raise BadRule(f"sasl.kerberos.principal.to.local.rules has an invalid rule: {text}")
    is_default, count, form, match, old, new, repeat, case = parsed.groups()
    if is_default:
        return lambda parts: parts[1] if parts[0] == default_realm() else None
    try:
        matching = None if match is None else re.compile(match)
        replaced = None if old is None else re.compile(old)
    except re.error as error:
        raise BadRule(f"sasl.kerberos.principal.to.local.rules has an invalid rule: {text}: {error}") from error

    def apply(parts: list[str]) -> str | None:
        if not count or len(parts) - 1 != int(count):
            return None
        base = _PARAMETER.sub(lambda parameter: _part(parts, parameter[1]), form)
        if matching is not None and not matching.fullmatch(base):
            return None
        name = base if replaced is None else replaced.sub(_python_form(new), base, count=0 if repeat else 1)
        if _NOT_SIMPLE.search(name):
            raise NoRule(f"Non-simple name {name} after auth_to_local rule {text}")
        return name.lower() if case == "L" else name.upper() if case == "U" else name

    return apply


def _part(parts: list[str], number: str) -> str:
    if not number or int(number) >= len(parts):
        raise NoRule(f"bad format: parameter ${number}")
    return parts[int(number)]


def _python_form(text: str) -> str:
    """Convert Java's replacement string to Python's."""
    return re.sub(r"\$(\d)", r"\\g<\1>", text.replace("\\", r"\\"))
