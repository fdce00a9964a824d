"""Fields of heartbeats that may not be blank: as Java's ``String.trim`` sees it, not as Unicode does."""

from collections.abc import Callable

import pytest

from broker.coordination.group.modern.consumer import validation as consumer
from broker.coordination.group.modern.share import validation as share
from broker.coordination.group.modern.streams import validation as streams
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

Check = Callable[[str, str], None]


def check_consumer(member_id: str, rack_id: str) -> None:
    """A heartbeat of a consumer group's member."""
    consumer.check(ConsumerGroupHeartbeatRequest("g", member_id, 2, rack_id=rack_id), (), makes_own_id=True)


def check_share(member_id: str, rack_id: str) -> None:
    """A heartbeat of a share group's member."""
    share.check(ShareGroupHeartbeatRequest("g", member_id, 2, rack_id=rack_id))


def check_streams(member_id: str, rack_id: str) -> None:
    """A heartbeat of a streams group's member."""
    request = StreamsGroupHeartbeatRequest(
        "g", member_id, 2, rack_id=rack_id, active_tasks=None, standby_tasks=None, warmup_tasks=None
    )
    streams.check(request, newer=True)


@pytest.mark.parametrize("check", [check_consumer, check_share, check_streams])
@pytest.mark.parametrize("blank", ["", " ", "\t\r\n", "\x00", "\x0e \x1b"])
def test_controls_and_spaces_are_blank(check: Check, blank: str) -> None:
    """An id of control characters and spaces is refused as blank, with INVALID_REQUEST."""
    for fields in ((blank, "rack"), ("m", blank)):
        with pytest.raises(KafkaError) as refused:
            check(*fields)
        assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("check", [check_consumer, check_share, check_streams])
@pytest.mark.parametrize("text", ["\x7f", "\x85", "\xa0", "\u2003", "\u3000"])
def test_other_spaces_of_unicode_are_not(check: Check, text: str) -> None:
    """A member id of other Unicode spaces is valid, because Java does not count them as blank."""
    check(text, text)
