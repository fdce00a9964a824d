"""Records of share groups, byte for byte as Kafka 4.3.1's serializers write them (transactions F.4)."""

from uuid import UUID

import pytest

from protocol.log_records.consumer_group import TargetPartitions
from protocol.log_records.group import decode, encode
from protocol.log_records.share_group import (
    DeletingTopic,
    ShareCurrentMember,
    ShareGroupEpoch,
    ShareGroupKind,
    ShareGroupRecord,
    ShareGroupValue,
    ShareMemberMetadata,
    ShareTargetEpoch,
    ShareTargetMember,
    StatePartitions,
    StateTopic,
)

ID = UUID(bytes=bytes(range(16)))
HEX = ID.hex
PARTITIONS = (TargetPartitions(ID, (0, 2)),)
VECTORS = [
    (ShareMemberMetadata(None, "c", "/h", ("a", "b")), "m", "000a", "000263032f68030261026200"),
    (ShareGroupEpoch(3, 5), "", "000b", "00000003000000000000000500"),
    (ShareTargetEpoch(3, 9), "", "000c", "000000030100080000000000000009"),
    (ShareTargetEpoch(3), "", "000c", "0000000300"),
    (ShareTargetMember(PARTITIONS), "m", "000d", f"02{HEX}0300000000000000020000"),
    (ShareCurrentMember(3, 2, 0, PARTITIONS), "m", "000e", f"00000003000000020002{HEX}0300000000000000020000"),
    (
        StatePartitions((StateTopic(ID, "a", (1,)),), (), (DeletingTopic(ID, "b"),)),
        "",
        "000f",
        f"02{HEX}02610200000001000102{HEX}02620000",
    ),
]


@pytest.mark.parametrize(("value", "name", "kind", "value_hex"), VECTORS)
def test_records_are_kafkas_bytes(value: ShareGroupValue, name: str, kind: str, value_hex: str) -> None:
    """Written and read back, and their tombstones."""
    record = ShareGroupRecord.of("g", value, name)
    key, data = encode(record)
    assert key.hex() == f"{kind}000167" + ("00016d" if name else "")
    assert data is not None
    assert data.hex() == f"0000{value_hex}"
    assert decode(key, data) == record
    assert decode(key, None) == ShareGroupRecord(ShareGroupKind(int(kind, 16)), "g", name)
