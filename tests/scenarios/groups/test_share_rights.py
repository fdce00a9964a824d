"""What share groups answer where an authorizer decides (groups D.5, D.6)."""

import pytest

from protocol.errors import ErrorCode
from protocol.messages.share_fetch import FetchPartition, FetchTopic
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import RANDOM_ID
from tests.scenarios.groups.sharers import ACCEPT, SHARE_SETTINGS, Sharer
from tests.scenarios.groups.test_share_fetch import Queue

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.mark.parametrize("guarded", [False, True])
def test_unknown_topics_with_an_authorizer(broker_with: BrokerWith, guarded: bool) -> None:
    """Kafka asks its authorizer for a topic without a name, and fails, super users included (groups D.5 SF3); 4.4."""
    settings = SHARE_SETTINGS | (AUTHORIZER if guarded else {})
    queue = Queue(broker_with(settings=settings, as_version="4.4"))
    member = queue.member()
    assert member.first()
    stranger = Sharer(queue.wire, RANDOM_ID, "m2")
    assert stranger.fetch().error_code is (ErrorCode.UNKNOWN_SERVER_ERROR if guarded else ErrorCode.NONE)
    member.topic_id = RANDOM_ID
    refused = member.acknowledge((0, 0, [ACCEPT]))
    assert refused.error_code is (ErrorCode.UNKNOWN_SERVER_ERROR if guarded else ErrorCode.NONE)
    last = member.fetch(epoch=-1, topics=[FetchTopic(RANDOM_ID, [FetchPartition(0, [])])])
    assert last.error_code is (ErrorCode.UNKNOWN_SERVER_ERROR if guarded else ErrorCode.NONE)
