"""Subnets in CIDR notation, which an ACL may have as its host since 4.4 (Kafka's ``CidrUtils``, of Commons Net)."""

import ipaddress
import re
from functools import lru_cache

_IPV4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_PREFIX = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_IPV6_BITS = 128

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(maxsize=1024)  # ours: each ACL's subnet is compared with each client
def subnet(text: str) -> Network:
    """Parse a subnet; bits beyond its prefix are ignored.

    Raises:
        ValueError: not a subnet; the message is Kafka's.
    """
    if ":" in text:
        return _subnet_of_ipv6(text)
    address_match = _IPV4.fullmatch(text)
    if address_match is None:
        raise ValueError(f"Could not parse [{text}]")
    *parts, prefix = map(int, address_match.groups())
    for value, most in (*((part, 255) for part in parts), (prefix, 32)):  # a byte of an IPv4 address, and its bits
        if value > most:
            raise ValueError(f"Value [{value}] not in range [0,{most}]")
    return ipaddress.IPv4Network((".".join(map(str, parts)), prefix), strict=False)


def _subnet_of_ipv6(text: str) -> Network:
    address, slash, prefix = text.partition("/")
    if not slash:
        raise ValueError(f"Could not parse [{text}] - missing prefix length")
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"Could not parse [{text}] - invalid prefix length")
    if not 0 <= int(prefix) <= _IPV6_BITS:
        raise ValueError(f"Could not parse [{text}] - prefix length must be between 0 and {_IPV6_BITS}")
    try:
        return ipaddress.IPv6Network((address, int(prefix)), strict=False)
    except ValueError as error:
        raise ValueError(f"Could not parse [{address}]") from error


def holds(text: str, host: str) -> bool:
    """Whether a subnet contains an address; False if the text is not a subnet, or the host no address of its family."""
    if "/" not in text:
        return False
    try:
        return ipaddress.ip_address(host) in subnet(text)
    except ValueError:
        return False
