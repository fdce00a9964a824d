"""The principal in a client's certificate, and the rules that map it (core G.1)."""

import asyncio
import re
from collections.abc import Callable, Sequence

ANONYMOUS = "User:ANONYMOUS"
# Java's keywords for the attributes of a distinguished name (RFC 2253); others are written as object id and hex value.
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
_SEQUENCE = 0x30  # the tag of an ASN.1 sequence
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_SPLIT = re.compile(rf"\s*(?:{_RULE})\s*(?:,\s*|$)")
_GROUP = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}|\$")


class MappingError(ValueError):
    """The mapping rules are invalid, or none matches a name; the message is one sentence."""


class PrincipalMapping:
    """`ssl.principal.mapping.rules`, after `SslPrincipalMapper`: the first rule that matches the whole name maps it."""

    def __init__(self, text: str) -> None:
        """Parse the rules, such as `RULE:^CN=(.*?),.*$/$1/L,DEFAULT`.

        Raises:
            MappingError: they are invalid.
        """
        self._rules: list[Callable[[str], str | None]] = []
        at, text = 0, text.strip()
        while at < len(text):
            match = _SPLIT.match(text, at)
            if match is None:
                raise MappingError(f"`ssl.principal.mapping.rules` has an invalid rule: {text[at:]}")
            is_default, pattern, replacement, case = match.groups()
            self._rules.append(_keep if is_default else _rule(pattern, replacement, case))
            at = match.end()

    def name_of(self, distinguished: str) -> str:
        """Map a distinguished name. Raises MappingError if no rule matches."""
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
        short = compiled.sub(form, name)
        return short.lower() if case == "L" else short.upper() if case == "U" else short

    return mapped


def _python_replacement(text: str, groups: int) -> str:
    """Convert Java's replacement string to Python's: `$1` is a group, unless the pattern has no such group."""

    def changed(reference: re.Match[str]) -> str:
        escaped, number, named = reference.groups()
        if escaped is not None:
            return "\\\\" if escaped == "\\" else escaped
        if named is not None:
            return rf"\g<{named}>"
        if number is not None and int(number) <= groups:
            return rf"\g<{number}>"
        return reference[0]

    return _GROUP.sub(changed, text)


def distinguished_name(transport: asyncio.BaseTransport) -> str | None:
    """Return the distinguished name in the client's certificate; ``None`` without a certificate."""
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
                for (name, value), (oid, der) in zip(rdn, encoded_rdn, strict=True)
            ]
            for rdn, encoded_rdn in zip(subject, encoded, strict=True)
        ]
    )


def _joined(parts: Sequence[Sequence[str]]) -> str:
    """Join the parts in reverse order, as in RFC 2253."""
    return ",".join(reversed(["+".join(rdn) for rdn in parts]))


def _encoded_subject(certificate: bytes) -> list[list[tuple[str, bytes]]]:
    """Return a certificate's subject: the object id of each attribute, and its DER-encoded value."""
    ((_, outer),) = _elements(certificate)
    signed = _elements(_elements(outer)[0][1])
    names = [content for first, content in signed if first[0] == _SEQUENCE]  # algorithm, issuer, validity, subject
    subject = []
    for _, rdn in _elements(names[3]):
        attributes = [_elements(attribute) for _, attribute in _elements(rdn)]
        subject.append([(_object_id(oid), value) for (_, oid), (value, _) in attributes])
    return subject


def content_of(data: bytes, at: int) -> tuple[int, int]:
    """Return where the content of the DER element at a position begins, and where it ends."""
    size, begin = data[at + 1], at + 2
    if size & 0x80:  # the other bits are the number of bytes that the size takes (X.690)
        begin += size & 0x7F
        size = int.from_bytes(data[at + 2 : begin], "big")
    return begin, begin + size


def _elements(data: bytes) -> list[tuple[bytes, bytes]]:
    """Split DER data into its elements: each as a whole, and its content."""
    elements, at = [], 0
    while at < len(data):
        begin, end = content_of(data, at)
        elements.append((data[at:end], data[begin:end]))
        at = end
    return elements


def _object_id(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:  # seven bits in each byte, the highest bit in all but the last
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    # The first two numbers are encoded together: 40 times the first, which is 0 to 2 (X.690).
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(value: str) -> str:
    text = "".join(f"\\{character}" if character in ',+"\\<>;' else character for character in value)
    if text[:1] in (" ", "#"):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if text.endswith(" ") and len(text) > 1 else text
