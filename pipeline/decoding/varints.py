"""Zig-zag varints, many at a time (Kafka: ByteUtils).

All bytes are followed by `PADDING` zeros, which end any varint: what is read behind the end is wrong, but there.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from protocol.records.errors import MalformedRecordsError

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

PADDING: Final = 64
"""Zeros behind the bytes. The varints of one record's fields cannot lead further."""
VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10


def read_varints(data: Bytes, at: Positions, max_bytes: int = VARINT_BYTES) -> tuple[Positions, Positions]:
    """The numbers at these positions, and the positions after them. Raises MalformedRecordsError for a longer one."""
    first = data[at]
    value = first.astype(np.int64)
    after = at + 1
    more = np.flatnonzero(first >= 0x80)
    if len(more):
        value &= 0x7F
    shift = 7
    while len(more):
        if shift == 7 * max_bytes:
            raise MalformedRecordsError(f"a varint of more than {max_bytes} bytes")
        places = after[more]
        byte = data[places].astype(np.int64)
        value[more] |= (byte & 0x7F) << shift
        after[more] = places + 1
        shift += 7
        more = more[byte >= 0x80]
    if max_bytes == VARINT_BYTES and shift > 28:
        value &= 0xFFFFFFFF  # Java drops what does not fit
    return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), after
