"""Writes a frame that consists of several pieces of bytes."""

import asyncio
import sys
from collections.abc import Sequence

_Bytes = bytes | bytearray | memoryview

WRITELINES_NEVER_PAUSES = (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)
"""Whether asyncio's ``writelines`` does not report a full buffer (CVE-2024-12254).

Without the report, requests of a client that does not read are served without end, and their responses kept in memory.
"""


def write_parts(transport: asyncio.Transport, parts: Sequence[_Bytes], join_below_bytes: int) -> None:
    """Write the pieces of a frame, joined if they are small; the transport pauses its protocol when much is pending."""
    if sum(map(len, parts)) < join_below_bytes:
        transport.write(b"".join(parts))
    elif WRITELINES_NEVER_PAUSES:
        for part in parts:
            transport.write(part)
    else:
        transport.writelines(parts)
