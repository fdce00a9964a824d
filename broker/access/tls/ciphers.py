"""Cipher suites: Java's names (`ssl.cipher.suites`) to OpenSSL's (RFC 8446 and the IANA registry)."""

import re

_V13 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
                  "TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"})  # fmt: skip
_V12 = re.compile(r"TLS_(?P<exchange>[A-Z_]+)_WITH_(?P<cipher>[A-Z0-9_]+?)(?:_(?P<hash>SHA\d*))?")


def is_of_tls_13(suite: str) -> bool:
    """Whether a suite belongs to TLS 1.3, whose suites OpenSSL offers regardless of its cipher list."""
    return suite in _V13


def openssl_name(suite: str) -> str | None:
    """Return OpenSSL's name of a TLS 1.2 suite; ``None`` for other names."""
    parsed = _V12.fullmatch(suite)
    if parsed is None:
        return None
    exchange = "" if parsed["exchange"] == "RSA" else parsed["exchange"].replace("_", "-") + "-"
    cipher = re.sub(r"AES_(\d+)", r"AES\1", parsed["cipher"]).replace("_CBC", "").replace("_", "-")
    digest = "" if cipher.startswith("CHACHA20") or parsed["hash"] is None else f"-{parsed['hash']}"
    return f"{exchange}{cipher}{digest}"
