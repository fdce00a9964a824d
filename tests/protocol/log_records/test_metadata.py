"""Records of __cluster_metadata, byte for byte as Apache Kafka 4.3.1 wrote them."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.log_records import metadata as m
from protocol.log_records import metadata_security as s
from protocol.records.errors import MalformedRecordsError

FOO = UUID("39e68588-f62d-44ba-b3c4-09bef9dbc571")
STATE = UUID("ee5a41a6-dfcb-4085-96d4-7b1037feaf7a")
DIRECTORY = UUID("adf7879b-63ff-e7b1-e62b-0d2572a1f14b")
FEATURES = (
    ("eligible.leader.replicas.version", 0, 1),
    ("metadata.version", 7, 30),
    ("share.version", 0, 1),
    ("kraft.version", 0, 1),
    ("group.version", 0, 1),
    ("streams.version", 0, 1),
    ("transaction.version", 0, 2),
)
REGISTERED = m.RegisterBrokerRecord(
    broker_id=1,
    incarnation_id=UUID("b7604ac0-dd09-4b50-af1e-bcdebcb89fe1"),
    broker_epoch=11,
    end_points=(m.Endpoint("PLAINTEXT", "127.0.0.1", 29092, 0),),
    features=tuple(m.SupportedFeature(*feature) for feature in FEATURES),
    log_dirs=(DIRECTORY,),
)
PARTITION = m.PartitionRecord(
    0, FOO, (1,), (1,), leader=1, leader_epoch=0, partition_epoch=0, directories=(DIRECTORY,)
)  # fmt: skip

VECTORS: list[tuple[str, Any]] = [
    ("01170001001212426f6f747374726170207265636f726473", m.BeginTransactionRecord("Bootstrap records")),
    ("010c00116d657461646174612e76657273696f6e001e00", m.FeatureLevelRecord("metadata.version", 30)),
    ("0104000401146d696e2e696e73796e632e7265706c69636173023100", m.ConfigRecord(4, "", "min.insync.replicas", "1")),
    ("01180000", m.EndTransactionRecord()),
    (
        (
            "0100040000000100b7604ac0dd094b50af1ebcdebcb89fe1000000000000000b020a504c41494e544558540a3132372e302e302e3171a4"
            "0000000821656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e0000000100116d657461646174612e766572"
            "73696f6e0007001e000e73686172652e76657273696f6e00000001000e6b726166742e76657273696f6e00000001000e67726f75702e76"
            "657273696f6e00000001001073747265616d732e76657273696f6e0000000100147472616e73616374696f6e2e76657273696f6e000000"
            "020000010001001102adf7879b63ffe7b1e62b0d2572a1f14b"
        ),
        REGISTERED,
    ),
    ("01140000", m.NoOpRecord()),
    ("01110000000001000000000000000b010001ff", m.BrokerRegistrationChangeRecord(1, 11, fenced=-1)),
    ("01110300000001000000000000000b01030101", m.BrokerRegistrationChangeRecord(1, 11, cordoned_log_dirs=())),
    ("01020004666f6f39e68588f62d44bab3c409bef9dbc57100", m.TopicRecord("foo", FOO)),
    (
        (
            "0103020000000039e68588f62d44bab3c409bef9dbc57102000000010200000001010100000001000000000000000002adf7879b63ffe7"
            "b1e62b0d2572a1f14b00"
        ),
        PARTITION,
    ),
    ("010900f05dc607075b499a91009cefec28b85d00", m.RemoveTopicRecord(UUID("f05dc607-075b-499a-9100-9cefec28b85d"))),
    (
        "011200d375b24fa1de424c95489f55cd4c9d830204666f6f0307557365723a78022a030300",
        s.AccessControlEntryRecord(UUID("d375b24f-a1de-424c-9548-9f55cd4c9d83"), 2, "foo", 3, "User:x", "*", 3, 3),
    ),
    (
        "0113002aa23fe92d6548bf9553f0b69e0e10a800",
        s.RemoveAccessControlEntryRecord(UUID("2aa23fe9-2d65-48bf-9553-f0b69e0e10a8")),
    ),
    ("01160002760100", s.RemoveUserScramCredentialRecord("v", 1)),
    ("011c00145f5f7472616e73616374696f6e5f737461746500", m.ClearElrRecord("__transaction_state")),
    ("010f0000000001000000000000000b00000000000003e800", m.ProducerIdsRecord(1, 11, 1000)),
    (
        "010e00030a636c69656e742d6964026300057573657200001370726f64756365725f627974655f72617465408f4000000000000000",
        s.ClientQuotaRecord(
            (s.QuotaEntity("client-id", "c"), s.QuotaEntity("user", None)), "producer_byte_rate", 1000.0
        ),
    ),
    (
        "01050200000000ee5a41a6dfcb408596d47b1037feaf7a040001010104ffffffff0605020000000107050200000001",
        m.PartitionChangeRecord(0, STATE, (), -1, eligible_leader_replicas=(1,), last_known_elr=(1,)),
    ),
    (
        "01050200000000ee5a41a6dfcb408596d47b1037feaf7a0400050200000001010400000001050101070101",
        m.PartitionChangeRecord(0, STATE, (1,), 1, leader_recovery_state=1, last_known_elr=()),
    ),
]


@pytest.mark.parametrize(("text", "record"), VECTORS, ids=lambda value: type(value).__name__)
def test_real_records_are_read_and_written_the_same(text: str, record: Any) -> None:
    """Decoded and encoded, they are the same bytes."""
    value = bytes.fromhex(text)
    assert m.decode(None, value) == record
    assert m.encode(record) == (None, value)


@pytest.mark.parametrize("kind", m.KINDS)
def test_every_kind_survives_the_way_to_the_log_and_back(kind: int) -> None:
    """With all fields at their defaults."""
    cls, _ = m.KINDS[kind]
    _, value = m.encode(cls())
    assert value is not None
    assert value[1] == kind
    assert m.decode(None, value) == cls()


@pytest.mark.parametrize(
    ("level", "broker", "partition"), [(7, 1, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (30, 4, 2)]
)
def test_versions_follow_the_metadata_version(level: int, broker: int, partition: int) -> None:
    """As MetadataVersion of 4.3.1 has them; what an older version cannot hold is left out."""
    codec = m.MetadataCodec(level)
    records = REGISTERED, PARTITION, m.PartitionChangeRecord(leader=1)
    values = [codec.encode(record)[1] or b"" for record in records]
    assert [value[2] for value in values] == [broker, partition, partition]
    assert m.decode(None, values[1]) == (PARTITION if partition else replace(PARTITION, directories=()))
    assert m.decode(None, values[0]) == (REGISTERED if broker >= 3 else replace(REGISTERED, log_dirs=()))


def test_a_registration_change_is_written_in_the_lowest_version_that_has_its_fields() -> None:
    """Seen on 4.3.1: version 0 to unfence, 3 for cordoned directories."""
    changes = [
        m.BrokerRegistrationChangeRecord(1, 1, fenced=1),
        m.BrokerRegistrationChangeRecord(1, 1, in_controlled_shutdown=1),
        m.BrokerRegistrationChangeRecord(1, 1, log_dirs=(DIRECTORY,)),
        m.BrokerRegistrationChangeRecord(1, 1, cordoned_log_dirs=()),
    ]
    assert [m.record_version(change) for change in changes] == [0, 1, 2, 3]


def test_tags_of_a_later_kafka_are_read_over() -> None:
    """An unknown tag, before or after known ones, changes nothing (transactions DSK-06)."""
    plain = bytes.fromhex("01110000000001000000000000000b010001ff")
    tagged = plain[:-4] + bytes((2,)) + plain[-3:] + bytes((99, 2, 7, 7))
    assert m.decode(None, tagged) == m.decode(None, plain)


def test_a_kind_of_a_later_kafka_is_skipped() -> None:
    """The log of a newer controller may hold kinds that are unknown here."""
    assert m.decode(None, bytes((1, 120, 0, 0))) is None


def test_a_later_version_is_read_as_the_highest_known() -> None:
    """What Kafka adds later is in tagged fields."""
    value = bytearray(bytes.fromhex(VECTORS[8][0]))
    value[2] = 9
    assert m.decode(None, bytes(value)) == m.TopicRecord("foo", FOO)


@pytest.mark.parametrize("value", [None, b"", b"\x01", b"\x02\x14\x00\x00", b"\x01\x02\x00\x09foo", b"\x01\x03\x02"])
def test_what_is_no_metadata_record_is_refused(value: bytes | None) -> None:
    """Null, cut short, an unknown frame version, lengths beyond the end."""
    with pytest.raises(MalformedRecordsError):
        m.decode(None, value)


@pytest.mark.slow
@given(st.binary(max_size=60))
def test_garbage_is_refused_or_read_but_nothing_else(tail: bytes) -> None:
    """No other exception, no endless loop, no huge allocation."""
    for kind in m.KINDS:
        try:
            m.decode(None, bytes((1, kind, 0)) + tail)
        except MalformedRecordsError:
            continue
    assert m.decode(None, b"\x01\x14\x09\x00" + tail) == m.NoOpRecord()


def test_a_record_ends_where_its_value_ends() -> None:
    """Unless it is of a later version, whose fields are behind those that are known (AbstractApiMessageSerde.read)."""
    record = b"\x01\x14\x00\x00"
    assert m.decode(None, record) == m.NoOpRecord()
    with pytest.raises(MalformedRecordsError, match="1 bytes behind it"):
        m.decode(None, record + b"\0")
