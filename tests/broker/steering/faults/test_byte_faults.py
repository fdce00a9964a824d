"""Bytes of an answer, spoiled: 4 of size, 4 of correlation id, then the rest."""

import pytest

from broker.request.answers import Sending
from broker.steering.faults.byte_faults import ByteFault, Corrupt, Drip, Extra, Renumber, Truncate

ANSWER = bytes.fromhex("00000006 00000001 abcd")


@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        (Truncate(6), Sending((ANSWER[:6],), closes=True)),
        (Truncate(0), Sending((b"",), closes=True)),
        (Corrupt(8, 0xFF), Sending((bytes.fromhex("00000006 00000001 54cd"),))),
        (Corrupt(-1, 0x01), Sending((bytes.fromhex("00000006 00000001 abcc"),))),
        (Corrupt(99, 0x01), Sending((ANSWER,))),
        (Renumber(-1), Sending((bytes.fromhex("00000006 ffffffff abcd"),))),
        (Drip(4, 10), Sending((ANSWER[:4], ANSWER[4:8], ANSWER[8:]), 10)),
        (Extra(b"\xee"), Sending((ANSWER + b"\xee",))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_goes_out(fault: ByteFault, sent: Sending) -> None:
    """Pieces, pauses, and whether the connection ends."""
    assert fault.spoil(ANSWER) == sent
