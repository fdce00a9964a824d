"""The row about the rights that group APIs need; all of core G.8 is in tests/scenarios/core (groups G.2)."""

from protocol.acls import AclOperation as Op
from protocol.acls import ResourceType as Kind
from protocol.apis import ApiKey
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.scenarios.groups.members import commit
from tests.scenarios.guarded import Guarded


def test_OFF_19_each_group_is_allowed_by_itself(guarded: Guarded) -> None:
    """GROUP_AUTHORIZATION_FAILED in the one that may not be described; the offsets of the other."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"])
    while any(each.error_code for each in guarded.admin.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators):
        pass
    assert commit(guarded.admin, "foo", 5) == 0
    guarded.allow((Op.DESCRIBE, Kind.GROUP, "g"), (Op.DESCRIBE, Kind.TOPIC, "foo"))
    topics = [OffsetFetchRequestTopics("foo", [0])]
    offset_fetch = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup("g", topics), OffsetFetchRequestGroup("h", topics)]
    )
    groups = {each.group_id: each for each in guarded.client.call(ApiKey.OFFSET_FETCH, 8, offset_fetch).groups}
    assert (groups["g"].error_code, groups["h"].error_code) == (0, 30)
    ((partition,),) = [topic.partitions for topic in groups["g"].topics]
    assert (partition.error_code, partition.committed_offset) == (0, 5)
    assert list(groups["h"].topics) == []
