"""Requests and answers without their secrets, before the journal keeps, writes or captures them.

Only the few APIs that carry secrets are looked at; their messages are decoded, masked and encoded again. Sizes of what
is masked stay, but for settings.
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
"""The APIs whose messages have secret fields, or settings with values."""
_UNREADABLE = (BadFrame, ValueError, IndexError, KeyError, AttributeError, TypeError)
_SHORTEST = 8


def is_readable(frame: bytes | bytearray) -> bool:
    """Whether a frame begins with a request's header."""
    try:
        decode_header(frame)
    except _UNREADABLE:
        return False
    return True


def redacted_request(frame: bytes | bytearray) -> bytes | bytearray:
    """A request's frame without secrets; of one that cannot be read, only the header."""
    header: RequestHeader | None = None
    try:
        header = decode_header(frame)
        request = decode_request(frame, header)
        masked = without_secrets(request)
        if masked is request:
            return frame
        key, version = header.api_key, header.api_version
        return encode_request(key, version, header.correlation_id, header.client_id, masked)[4:]
    except Exception:  # noqa: BLE001 - hostile frames too are kept, as far as they are safe to keep
        return frame[: _SHORTEST if header is None else header.body_at]


def redacted_answer(frame: bytes | bytearray, answer: bytes) -> bytes:
    """The answer to such a request without secrets, size and all; of one that cannot be read, the correlation id."""
    try:
        header = decode_header(frame)
        number, response = decode_response(header.api_key, header.api_version, answer[4:])
        masked = without_secrets(response)
        if masked is response:
            return answer
        return b"".join(encode_response(header.api_key, header.api_version, number, masked))
    except Exception:  # noqa: BLE001 - hostile frames too are kept, as far as they are safe to keep
        return b"\0\0\0\4" + answer[4:8]


def without_secrets(value: Any) -> Any:
    """A message with its secrets masked: a copy, or the very same where there is none in it."""
    if isinstance(value, Message):
        changes = {name: masked for name in value.__slots__ if (masked := _field(value, name)) is not None}
        return value.changed(**changes) if changes else value
    if isinstance(value, list | tuple):
        masked_items = [without_secrets(each) for each in value]
        same = all(ours is theirs for ours, theirs in zip(masked_items, value, strict=True))
        return value if same else masked_items
    return value


def _field(message: Message, name: str) -> Any | None:
    """A field's masked value; ``None`` where there is nothing to mask."""
    value = getattr(message, name)
    if name in FIELDS:
        return b"*" * len(value) if value else None
    if name == "value" and isinstance(value, str):
        setting = getattr(message, "name", None)
        return HIDDEN if isinstance(setting, str) and may_be_secret(setting) else None
    masked = without_secrets(value)
    return None if masked is value else masked
