"""Features that change while clients are connected, and what the brokers do then (core B.13)."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.conftest import BrokerWith
from tests.server import Server
from tests.wire import Wire

OLD = {
    "metadata.version": 10,
    "eligible.leader.replicas.version": 0,
    **dict.fromkeys(("group.version", "transaction.version", "share.version", "streams.version"), 0),
}


def move(wire: Wire, feature: str, level: int, kind: int = 1) -> None:
    """Set a feature's level."""
    update = FeatureUpdateKey(feature, level, upgrade_type=kind)
    assert not wire.call(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(1000, [update])).error_code


def coordinated(wire: Wire, kind: int, key: str) -> Wire:
    """The connection, once the group or transactional id has its coordinator."""
    wire.call(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]))
    return wire


def test_scram_needs_a_metadata_version_that_keeps_it(broker_with: BrokerWith) -> None:
    """3.5-IV2; before it each user is refused, also one who goes."""
    wire = broker_with(features=OLD).wire()
    user = ScramCredentialUpsertion("u", 1, 4096, b"salt", b"password")
    request = AlterUserScramCredentialsRequest([ScramCredentialDeletion("v", 1)], [user])

    def answers() -> list[tuple[int, str | None]]:
        results = wire.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request).results
        return [(each.error_code, each.error_message) for each in sorted(results, key=lambda each: each.user)]

    assert answers() == [(35, "The current metadata.version does not support SCRAM")] * 2
    move(wire, "metadata.version", 11)
    assert answers()[0] == (0, None)


def test_the_consumer_protocol_comes_and_goes_with_its_feature(broker: Server) -> None:
    """A member that is connected is refused without group.version, and goes on when it is back."""
    wire = coordinated(broker.wire(), 0, "g")
    join = ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=5000, subscribed_topic_names=["t"], topic_partitions=()
    )
    epoch = wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, join).member_epoch
    beat = ConsumerGroupHeartbeatRequest("g", "m", epoch)
    move(wire, "group.version", 0, 2)
    assert wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat).error_code is ErrorCode.UNSUPPORTED_VERSION
    move(wire, "group.version", 1)
    answer = wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat)
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, epoch)


@pytest.mark.parametrize("level", [1, 2])
def test_clients_choose_their_transaction_protocol_by_the_level(broker: Server, level: int) -> None:
    """A connected client is shown the new level; EndTxn v5 raises the epoch at either, as seen on 4.3.1 (KIP-890)."""
    wire = coordinated(broker.wire(), 1, "x")
    move(wire, "transaction.version", level, 1 if level == 2 else 2)
    shown = wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1.0")).finalized_features
    assert ("transaction.version", level) in {(each.name, each.max_version_level) for each in shown}
    producer = wire.call(ApiKey.INIT_PRODUCER_ID, 5, InitProducerIdRequest("x", 60_000))
    end = EndTxnRequest("x", producer.producer_id, producer.producer_epoch, committed=False)
    answer = wire.call(ApiKey.END_TXN, 5, end)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, producer.producer_epoch + 1)
