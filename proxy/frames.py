"""Functions of a single frame: whether the proxy can read it, whether it rejects it, and its parts for the journal."""

import struct
from contextlib import suppress
from typing import Any

from broker.handlers import APIS
from broker.steering.journal.kept import WITH_RECORDS
from broker.steering.journal.ring import WHOLE_BYTES
from protocol.apis import ApiKey, api_key
from protocol.codec import (
    BadFrame,
    RequestHeader,
    decode_header,
    decode_response,
    encode_response,
    is_flexible,
    known_versions,
)
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from protocol.uvarint import uvarint
from protocol.writers import Parts

UNREADABLE = (BadFrame, IndexError, KeyError, ValueError, struct.error)
"""Exceptions when a message is read that does not follow the schema of its version."""
_KEYS = frozenset(int(api.key) for api in APIS)
_START = struct.Struct(">hhi")
_SMALL_BYTES = 256  # below _SHORTEST_RECORDS of the journal, from which a part counts as records


def is_known(header: RequestHeader) -> bool:
    """Whether the proxy can read requests and responses of this API and version."""
    low, high = known_versions(header.api_key) or (0, -1)
    return header.api_key in _KEYS and low <= header.api_version <= high


def is_request(frame: bytearray) -> bool:
    """Whether a frame begins as a request does; a SASL token does not."""
    try:
        return is_known(decode_header(frame))
    except BadFrame:
        return False


def refusal_of(frame: bytearray) -> Parts | None:
    """Return the rejection of an ApiVersions request whose version is too high: the highest one, in v0 (KIP-511).

    A broker of a later release would serve it, and offer versions of other APIs whose addresses the proxy cannot read.
    ``None`` for all other requests.
    """
    if len(frame) < _START.size or api_key(frame) != ApiKey.API_VERSIONS:
        return None
    _, version, number = _START.unpack_from(frame)
    low, high = known_versions(ApiKey.API_VERSIONS) or (0, 0)
    if version <= high:
        return None
    answer = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(ApiKey.API_VERSIONS, low, high)])
    return encode_response(ApiKey.API_VERSIONS, 0, number, answer)


# --- for the journal -------------------------------------------------------------------------------------------------


def journal_parts(header: RequestHeader | None, raw: bytearray | bytes, response: Any = None) -> Parts:
    """Return a response with its size. Records of a large one are separate parts, which the journal leaves out."""
    size = len(raw).to_bytes(4, "big")
    if len(raw) > WHOLE_BYTES and header is not None and header.api_key in WITH_RECORDS and is_known(header):
        key, version = header.api_key, header.api_version
        with suppress(*UNREADABLE):
            response = decode_response(key, version, raw)[1] if response is None else response
            return [size, *_pieces(raw, response, flexible=is_flexible(key, version))]
    return [size, raw]


def _pieces(raw: bytearray | bytes, response: Any, *, flexible: bool) -> Parts:
    """Cut a Fetch response as `broker` writes its own: small parts, the size of each set of records, the records."""
    parts: Parts = []
    view, at = memoryview(raw), 0
    for topic in response.responses:
        for partition in topic.partitions:
            records: bytes | memoryview | None = partition.records
            if not records:
                continue
            size = len(records)
            # The records are parts of the response, in its order; 64 bytes are more than a batch's header.
            begin = raw.find(bytes(records[:64]), at)
            prefix = len(uvarint(size + 1)) if flexible else 4  # the length before it, an int32 in older versions
            parts += [*_small(view[at : begin - prefix]), bytes(view[begin - prefix : begin])]
            parts.append(view[begin : begin + size])
            at = begin + size
    return [*parts, *_small(view[at:])]


def _small(view: memoryview) -> list[bytes]:
    return [bytes(view[at : at + _SMALL_BYTES]) for at in range(0, len(view), _SMALL_BYTES)]
