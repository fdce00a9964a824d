"""Decodes many zig-zag varints at a time (Kafka: ByteUtils).

`PADDING` zeros follow all bytes and end any varint: what is read after the end is wrong, but never out of bounds.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from protocol.records.errors import MalformedRecordsError

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

PADDING: Final = 64
"""Zeros after the bytes. The varints of one record's fields cannot extend further."""
VARINT_BYTES: Final = 5  # 32 bits in groups of seven
VARLONG_BYTES: Final = 10  # 64 bits


def read_varints(data: Bytes, at: Positions, max_bytes: int = VARINT_BYTES) -> tuple[Positions, Positions]:
    """Return the numbers at these positions, and the positions after them.

    Raises MalformedRecordsError if one is longer.
    """
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
    if max_bytes == VARINT_BYTES and shift > 28:  # the fifth byte
        value &= 0xFFFFFFFF  # Java truncates to 32 bits too
    return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), after
