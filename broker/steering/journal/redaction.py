"""Masks secrets in requests and responses before the journal keeps, writes or captures them.

Only messages of the few APIs with secrets are decoded, masked and encoded again. A masked value keeps its size, except
for values of settings.
"""

from typing import Any

from broker.settings.secrets import FIELDS, HIDDEN, may_be_secret
from protocol.apis import ApiKey
from protocol.codec import (
    BadFrame,
    RequestHeader,
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from protocol.types import Message

APIS = frozenset(
    {
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.CREATE_TOPICS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
    }
)
"""The APIs whose messages have secret fields or values of settings."""
_UNREADABLE = (BadFrame, ValueError, IndexError, KeyError, AttributeError, TypeError)
_SHORTEST = 8  # api key, version and correlation id


def is_readable(frame: bytes | bytearray) -> bool:
    """Return whether a frame begins with a valid request header."""
    try:
        decode_header(frame)
    except _UNREADABLE:
        return False
    return True


def redacted_request(frame: bytes | bytearray) -> bytes | bytearray:
    """Return a request's frame with secrets masked; only the header if it cannot be decoded."""
    header: RequestHeader | None = None
    try:
        header = decode_header(frame)
        request = decode_request(frame, header)
        masked = without_secrets(request)
        if masked is request:
            return frame
        key, version = header.api_key, header.api_version
        return encode_request(key, version, header.correlation_id, header.client_id, masked)[4:]  # without the size
    except Exception:  # noqa: BLE001 - hostile frames are kept too, as far as that is safe
        return frame[: _SHORTEST if header is None else header.body_at]


def redacted_answer(frame: bytes | bytearray, answer: bytes) -> bytes:
    """Return a response, size field included, with secrets masked; only its correlation id if it cannot be decoded."""
    try:
        header = decode_header(frame)
        number, response = decode_response(header.api_key, header.api_version, answer[4:])  # without the size
        masked = without_secrets(response)
        if masked is response:
            return answer
        return b"".join(encode_response(header.api_key, header.api_version, number, masked))
    except Exception:  # noqa: BLE001 - hostile frames are kept too, as far as that is safe
        return b"\0\0\0\4" + answer[4:8]


def without_secrets(value: Any) -> Any:
    """Return a copy of a message with its secrets masked; the same object if it has none."""
    if isinstance(value, Message):
        changes = {name: masked for name in value.FIELDS if (masked := _field(value, name)) is not None}
        return value.changed(**changes) if changes else value
    if isinstance(value, list | tuple):
        masked_items = [without_secrets(each) for each in value]
        same = all(ours is theirs for ours, theirs in zip(masked_items, value, strict=True))
        return value if same else masked_items
    return value


def _field(message: Message, name: str) -> Any | None:
    """Return a field's masked value; ``None`` if there is nothing to mask."""
    value = getattr(message, name)
    if name in FIELDS:
        return b"*" * len(value) if value else None
    if name == "value" and isinstance(value, str):
        setting = getattr(message, "name", None)
        return HIDDEN if isinstance(setting, str) and may_be_secret(setting) else None
    masked = without_secrets(value)
    return None if masked is value else masked
