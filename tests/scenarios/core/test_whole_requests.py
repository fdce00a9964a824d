"""Requests that Kafka parses as a whole before it does anything: one unreadable part fails all of it.

Answers are those of a 4.3.1 broker.
"""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.scenarios.core.asking import created, fetch, produce_all
from tests.scenarios.core.batches import batch, with_fields
from tests.scenarios.core.test_configs import described
from tests.server import Server
from tests.wire import Wire

ONE = batch(b"a")
Bytes = bytes | bytearray
LONGEST = 2**31 - 1 - 12
"""The longest length of a batch whose size, with base offset and length field, still fits into an int."""
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, UNKNOWN = 0, 4
FAILED = ErrorCode.UNKNOWN_SERVER_ERROR


def end_offset(wire: Wire, name: str, partition: int = 0) -> int:
    """Where a partition ends."""
    return fetch(wire, name, partition=partition).high_watermark


@pytest.mark.parametrize("partition", [0, 1])
@pytest.mark.parametrize("before", [b"", ONE], ids=["first", "second"])
def test_a_batch_whose_length_overflows_fails_the_whole_produce(broker: Server, partition: int, before: Bytes) -> None:
    """-1 everywhere, and nothing is written: ByteBufferLogInputStream cuts a batch of a negative size."""
    wire = broker.wire()
    created(wire, "foo", 2)
    bad = with_fields(ONE, length=LONGEST + 1, sealed=False)
    answers = produce_all(wire, {"foo": {partition: before + bad, 1 - partition: ONE}})
    assert {each.error_code for each in answers.values()} == {FAILED}
    assert [end_offset(wire, "foo", each) for each in (0, 1)] == [0, 0]


def test_a_batch_that_is_only_too_long_fails_by_itself(broker: Server) -> None:
    """A batch beyond its topic's limit fails alone; the other partition is written."""
    wire = broker.wire()
    created(wire, "foo", 2)
    answers = produce_all(wire, {"foo": {0: with_fields(ONE, length=LONGEST, sealed=False), 1: ONE}})
    assert [answers[0].error_code, answers[1].error_code] == [ErrorCode.INVALID_RECORD, ErrorCode.NONE]
    assert [end_offset(wire, "foo", each) for each in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ((None, ONE), ErrorCode.NONE),
        ((with_fields(ONE, crc=1), None, ONE), ErrorCode.NONE),
        ((ONE + ONE, None, ONE), ErrorCode.INVALID_RECORD),
    ],
    ids=["null", "replaced before null", "refused before null"],
)
def test_an_entry_of_null_records_is_replaced_by_the_next(
    broker: Server, entries: tuple[Bytes | None, ...], code: ErrorCode
) -> None:
    """Where a partition comes again the last entry counts (KafkaApis.handleProduceRequest); refusals stay."""
    wire = broker.wire()
    created(wire, "foo")
    data = TopicProduceData("foo", [PartitionProduceData(0, each) for each in entries])
    response: ProduceResponse = wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, 1, 5_000, [data]))
    ((answer,),) = [each.partition_responses for each in response.responses]
    assert answer.error_code is code
    assert end_offset(wire, "foo") == 1


def alter(broker: Server, *resources: AlterConfigsResource) -> list[ErrorCode]:
    """The codes of one IncrementalAlterConfigs request."""
    request = IncrementalAlterConfigsRequest(list(resources), validate_only=False)
    response: IncrementalAlterConfigsResponse = broker.wire().call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    codes = {(each.resource_type, each.resource_name): each.error_code for each in response.responses}
    return [codes[each.resource_type, each.resource_name] for each in resources]


def change(kind: int, name: str, key: str, operation: int, value: str) -> AlterConfigsResource:
    """A resource with one change."""
    return AlterConfigsResource(kind, name, [AlterableConfig(key, operation, value)])


RETENTION = change(TOPIC, "foo", "retention.ms", SET, "777777")


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        (TOPIC, "bar", "retention.ms"),
        (TOPIC, "absent", "retention.ms"),
        (GROUP, "g", "consumer.session.timeout.ms"),
        (METRICS, "m", "metrics"),
    ],
)
@pytest.mark.parametrize("operation", [UNKNOWN, -1])
def test_an_unknown_operation_fails_all_that_goes_to_the_controller(
    broker: Server, kind: int, name: str, key: str, operation: int
) -> None:
    """ConfigurationControlManager fails on it; what the broker refuses by itself keeps its own answer."""
    wire = broker.wire()
    created(wire, "foo")
    created(wire, "bar")
    own = change(BROKER, "99", "log.cleaner.threads", SET, "1")
    codes = alter(broker, change(kind, name, key, operation, "5"), RETENTION, own)
    assert codes == [FAILED, FAILED, ErrorCode.INVALID_REQUEST]
    assert described(wire, TOPIC, "foo")["retention.ms"].value == "604800000"


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (change(BROKER, "", "log.cleaner.threads", UNKNOWN, "1"), ErrorCode.INVALID_REQUEST),
        (change(LOGGER, "1", "root", UNKNOWN, "INFO"), ErrorCode.INVALID_REQUEST),
        (change(BROKER, "1", "process.roles", 3, "broker"), FAILED),
        (change(BROKER, "", "controller.listener.names", 2, "X"), FAILED),
        (change(BROKER, "1", "log.dirs", 3, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_the_broker_itself_fails_on_leaves_the_others_alone(
    broker: Server, refused: AlterConfigsResource, code: ErrorCode
) -> None:
    """Unknown operations, and lists without a default (ConfigAdminManager.preprocess)."""
    wire = broker.wire()
    created(wire, "foo")
    assert alter(broker, refused, RETENTION) == [code, ErrorCode.NONE]
    assert described(wire, TOPIC, "foo")["retention.ms"].value == "777777"
