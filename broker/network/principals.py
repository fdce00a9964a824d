"""The principal that a client's certificate names, and the rules that map it (core G.1)."""

import asyncio
import re
from collections.abc import Callable, Sequence

ANONYMOUS = "User:ANONYMOUS"
# How Java writes the parts of a distinguished name (RFC 2253); others are an object id and the value in hexadecimal.
_SHORT = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_SEQUENCE = 0x30
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_SPLIT = re.compile(rf"\s*(?:{_RULE})\s*(?:,\s*|$)")
_GROUP = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}|\$")


class MappingError(ValueError):
    """The rules are written wrongly, or none of them matches a name; the message is one sentence."""


class PrincipalMapping:
    """`ssl.principal.mapping.rules`, after `SslPrincipalMapper`: the first rule that matches a whole name maps it."""

    def __init__(self, text: str) -> None:
        """Read the rules, such as `RULE:^CN=(.*?),.*$/$1/L,DEFAULT`.

        Raises:
            MappingError: they are written wrongly.
        """
        self._rules: list[Callable[[str], str | None]] = []
        at, text = 0, text.strip()
        while at < len(text):
            found = _SPLIT.match(text, at)
            if found is None:
                raise MappingError(f"`ssl.principal.mapping.rules` has an invalid rule: {text[at:]}")
            is_default, pattern, replacement, case = found.groups()
            self._rules.append(_keep if is_default else _rule(pattern, replacement, case))
            at = found.end()

    def name_of(self, distinguished: str) -> str:
        """The name of a distinguished name. Raises MappingError where no rule matches."""
        for rule in self._rules:
            name = rule(distinguished)
            if name is not None:
                return name
        raise MappingError(f"no rule of ssl.principal.mapping.rules applies to {distinguished}")


def _keep(name: str) -> str | None:
    return name


def _rule(pattern: str, replacement: str, case: str) -> Callable[[str], str | None]:
    try:
        compiled = re.compile(pattern.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!"))
        form = _python_replacement(replacement, compiled.groups)
    except re.error as error:
        raise MappingError(f"the pattern {pattern} of ssl.principal.mapping.rules is invalid: {error}") from error

    def mapped(name: str) -> str | None:
        if compiled.fullmatch(name) is None:
            return None
        found = compiled.sub(form, name)
        return found.lower() if case == "L" else found.upper() if case == "U" else found

    return mapped


def _python_replacement(text: str, groups: int) -> str:
    """Java's form of a replacement as Python's: `$1` is a group, unless the pattern has no such one."""

    def changed(found: re.Match[str]) -> str:
        escaped, number, named = found.groups()
        if escaped is not None:
            return "\\\\" if escaped == "\\" else escaped
        if named is not None:
            return rf"\g<{named}>"
        if number is not None and int(number) <= groups:
            return rf"\g<{number}>"
        return found[0]

    return _GROUP.sub(changed, text)


def distinguished_name(transport: asyncio.BaseTransport) -> str | None:
    """The distinguished name of the peer's certificate; ``None`` without a certificate."""
    certificate = transport.get_extra_info("peercert")
    if not certificate:
        return None
    subject: Sequence[Sequence[Sequence[str]]] = certificate["subject"]
    if all(name in _SHORT for rdn in subject for name, _ in rdn):
        return _joined([[f"{_SHORT[name]}={_escaped(value)}" for name, value in rdn] for rdn in subject])
    encoded = _encoded_subject(transport.get_extra_info("ssl_object").getpeercert(binary_form=True))
    return _joined(
        [
            [
                f"{_SHORT[name]}={_escaped(value)}" if name in _SHORT else f"{oid}=#{der.hex()}"
                for (name, value), (oid, der) in zip(rdn, own, strict=True)
            ]
            for rdn, own in zip(subject, encoded, strict=True)
        ]
    )


def _joined(parts: Sequence[Sequence[str]]) -> str:
    """The last part first, as RFC 2253 wants it."""
    return ",".join(reversed(["+".join(rdn) for rdn in parts]))


def _encoded_subject(certificate: bytes) -> list[list[tuple[str, bytes]]]:
    """The subject of a certificate: of each attribute its object id, and its value as it is encoded (DER)."""
    ((_, whole),) = _elements(certificate)
    signed = _elements(_elements(whole)[0][1])
    names = [content for first, content in signed if first[0] == _SEQUENCE]  # algorithm, issuer, validity, subject
    found = []
    for _, rdn in _elements(names[3]):
        attributes = [_elements(attribute) for _, attribute in _elements(rdn)]
        found.append([(_object_id(oid), value) for (_, oid), (value, _) in attributes])
    return found


def _elements(data: bytes) -> list[tuple[bytes, bytes]]:
    """What DER has one behind the other: each element as a whole, and its content."""
    found, at = [], 0
    while at < len(data):
        size, begin = data[at + 1], at + 2
        if size & 0x80:
            begin += size & 0x7F
            size = int.from_bytes(data[at + 2 : begin], "big")
        found.append((data[at : begin + size], data[begin : begin + size]))
        at = begin + size
    return found


def _object_id(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(value: str) -> str:
    text = "".join(f"\\{each}" if each in ',+"\\<>;' else each for each in value)
    if text[:1] in (" ", "#"):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if text.endswith(" ") and len(text) > 1 else text
