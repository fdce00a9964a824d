"""Records of consumer groups, byte for byte as brokers 4.3.1 and 4.4.0 wrote them (transactions F.4)."""

import pytest

from protocol.log_records.consumer_group import (
    ClassicMember,
    ClassicProtocol,
    ConsumerRecord,
    CurrentMember,
    GroupEpoch,
    MemberMetadata,
)
from protocol.log_records.group import decode, encode

SEEN = "0369410005746573740b2f3132372e302e302e3102056e6f7065010001d4c00672616e6765"
"""An instance id, no rack, the client, one topic, no expression, two minutes, the assignor."""
CONSUMER = MemberMetadata("iA", None, "test", "/127.0.0.1", ("nope",), "", 120_000, "range")
CLASSIC = MemberMetadata(
    None, None, "c", "/h", ("t",), "", 120_000, None, ClassicMember(60_000, (ClassicProtocol("range", b"\0\1"),))
)


@pytest.mark.parametrize(
    ("value", "value_hex"),
    [
        (CONSUMER, SEEN + "01000100"),
        (
            CLASSIC,
            "00000263032f68020274010001d4c000" + "01001101" + "0000ea60" + "02" + "0672616e6765" + "030001" + "0000",
        ),
        (GroupEpoch(2, 0), "0000000200"),
    ],
)
def test_records_are_kafkas_bytes(value: MemberMetadata | GroupEpoch, value_hex: str) -> None:
    """A member of the consumer protocol has a null there; without it Kafka takes it for a classic one."""
    record = ConsumerRecord.of("g", value, "C2" if isinstance(value, MemberMetadata) else "")
    key, data = encode(record)
    assert data is not None
    assert data.hex() == f"0000{value_hex}"
    assert decode(key, data) == record


def test_a_member_without_the_null_speaks_the_consumer_protocol() -> None:
    """As earlier versions of this server wrote it; no Kafka does."""
    key, _ = encode(ConsumerRecord.of("g", CONSUMER, "C2"))
    assert decode(key, bytes.fromhex(f"0000{SEEN}00")) == ConsumerRecord.of("g", CONSUMER, "C2")


def test_where_a_member_is_has_no_null() -> None:
    """The other records have no tagged structs."""
    _, data = encode(ConsumerRecord.of("g", CurrentMember(2, 0), "C2"))
    assert data is not None
    assert data.hex() == "0000" + "00000002" + "00000000" + "00" + "01" + "01" + "00"
