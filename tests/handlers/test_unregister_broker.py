"""UnregisterBroker: core B.13."""

from broker.handlers.unregister_broker import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.handlers.admin_harness import AdminStage


async def test_a_broker_is_forgotten() -> None:
    """With an empty message (core 0.3.2)."""
    stage = AdminStage(2)
    stage.stop(2)
    answer = await stage.ask(API, UnregisterBrokerRequest(2))
    assert (answer.error_code, answer.error_message, set(stage.image.brokers)) == (ErrorCode.NONE, "", {1})


async def test_an_unknown_broker_is_refused() -> None:
    """BROKER_ID_NOT_REGISTERED with Kafka's message."""
    answer = await AdminStage().ask(API, UnregisterBrokerRequest(4711))
    assert answer.error_code is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert answer.error_message == "Broker ID 4711 is not currently registered"


async def test_it_needs_alter_on_the_cluster() -> None:
    """Without ALTER on the cluster it gets CLUSTER_AUTHORIZATION_FAILED."""
    stage = AdminStage(2)
    answer = await stage.ask(API, UnregisterBrokerRequest(2), denied={(AclOperation.ALTER, ResourceType.CLUSTER)})
    assert answer.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert set(stage.image.brokers) == {1, 2}
