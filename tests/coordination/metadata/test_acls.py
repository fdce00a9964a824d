"""ACLs in the metadata log: what is written, what a snapshot holds, and how many at once."""

import pytest

from broker.coordination.metadata.acls import MOST_AT_ONCE, Acl, AclFilter
from broker.coordination.metadata.snapshot import records_of
from protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata_security import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from protocol.types import ZERO_UUID
from tests.coordination.metadata.harness import TOKEN, Bench, answer

ANY = AclFilter(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, PermissionType.ANY)


def acl(name: str = "t", operation: int = AclOperation.READ) -> Acl:
    """An ACL of a topic that has no id yet."""
    return Acl(ZERO_UUID, ResourceType.TOPIC, name, PatternType.LITERAL, "User:a", "*", operation, PermissionType.ALLOW)


def test_each_acl_is_written_once_with_an_id_of_its_own() -> None:
    """Also where it is asked for twice, in one request or in two."""
    bench = Bench()
    outcome = bench.machine.create_acls([acl(), acl("u"), acl()], TOKEN)
    assert answer(outcome) == [None, None, None]
    records = bench.do(outcome)
    assert [type(record) for record in records] == [AccessControlEntryRecord] * 2
    assert len({record.id for record in records} - {ZERO_UUID}) == 2
    assert bench.machine.create_acls([acl()]).records == ()


def test_acls_outlive_a_restart_and_are_in_snapshots() -> None:
    """ACLs are in the log and in snapshots until they are removed."""
    bench = Bench()
    bench.do(bench.machine.create_acls([acl(), acl("u")]))
    assert bench.reloaded().image.acls == bench.image.acls
    assert [each for each in records_of(bench.image) if isinstance(each, AccessControlEntryRecord)] == list(
        bench.image.acls.values()
    )
    outcome = bench.machine.delete_acls([ANY, ANY], TOKEN)
    values = list(bench.image.acls.values())
    assert answer(outcome) == [values, values]
    assert outcome.records == tuple(RemoveAccessControlEntryRecord(each.id) for each in values)
    bench.do(outcome)
    assert bench.reloaded().image.acls == {}


@pytest.mark.slow
def test_too_many_acls_cannot_be_deleted_at_once() -> None:
    """INVALID_REQUEST, and none of them is deleted."""
    bench = Bench()
    for half in range(2):
        bench.do(bench.machine.create_acls([acl(f"{half}-{index}") for index in range(MOST_AT_ONCE // 2)]))
    assert len(bench.machine.delete_acls([ANY]).records) == MOST_AT_ONCE
    bench.do(bench.machine.create_acls([acl()]))
    with pytest.raises(KafkaError) as caught:
        bench.machine.delete_acls([ANY])
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.slow
def test_filters_do_not_find_without_end() -> None:
    """Each of many may find all ACLs: INVALID_REQUEST, and none of them is deleted."""
    bench = Bench()
    bench.do(bench.machine.create_acls([acl(f"{index}") for index in range(1000)]))
    assert len(bench.machine.delete_acls([ANY] * 250).records) == 1000
    with pytest.raises(KafkaError) as caught:
        bench.machine.delete_acls([ANY] * 251)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
