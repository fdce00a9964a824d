"""Middleware and settings of --read-only: requests that would change a topic are refused, and periodic work is off.

The files never change (storage's OverlayFiles). What a consumer needs still works, in memory: members join, offsets are
committed, and an idempotent producer gets an id, then the refusal at its first batch.
"""

from collections.abc import Mapping
from typing import Final

from broker.request.api import AnyHandler
from broker.request.context import RequestContext
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.types import Message

REFUSAL: Final = "This cluster is read-only: it was started with --read-only, and its data directory must not change."

REFUSED: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ELECT_LEADERS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
    }
)

_MONTH: Final = str(2**31 - 1)  # ms, 24 days: the maximum that Kafka allows for these intervals
SETTINGS: Final[Mapping[str, str]] = {
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
    "log.initial.task.delay.ms": _MONTH,
    "log.retention.check.interval.ms": _MONTH,
    "offsets.retention.check.interval.ms": _MONTH,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": _MONTH,
    "transaction.remove.expired.transaction.cleanup.interval.ms": _MONTH,
}
"""Settings that override the user's, so that a copy of last month's directory is served as it is, without retention."""


async def refuse_changes(request: Message, ctx: RequestContext, handle: AnyHandler) -> Message | None:
    """Refuse requests that would change a topic; middleware inside the one that turns errors into responses.

    Kafka has no such mode. Every client treats POLICY_VIOLATION as fatal, and its message reaches the user;
    KAFKA_STORAGE_ERROR would be retried until the client's timeout.

    InitProducerId with a transactional id has no field for a message, and librdkafka retries it unless it is not
    authorized.

    Raises:
        KafkaError: POLICY_VIOLATION; TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
    """
    key = ctx.api.key
    if key in REFUSED:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, REFUSAL)
    if isinstance(request, InitProducerIdRequest) and request.transactional_id is not None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, REFUSAL)
    return await handle(request, ctx)
