"""An idempotent producer (KIP-98): a batch that is retried after a lost response is appended once."""

import struct
import time
from collections.abc import Callable
from typing import Final

from pipeline.transfer.wire import Cluster, WireError
from protocol.errors import ErrorCode
from protocol.records.batch import RecordBatch, increment_sequence

PATIENCE_S: Final = 120.0
"""Time for which a batch is retried, like `delivery.timeout.ms`."""
_PAUSE_S: Final = 0.1  # retry.backoff.ms of Kafka's clients
_LONGEST_PAUSE_S: Final = 2.0
_CRC_AT, _PRODUCER_AT = 17, 43  # positions in a batch (core D.4)
RETRIABLE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)  # fmt: skip
"""Kafka's retriable errors that Produce returns."""


class Producer:
    """A producer id, and the next sequence of each partition."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        sleep: Callable[[float], object] = time.sleep,  # noqa: TID251 - retries wait in real time
        clock: Callable[[], float] = time.monotonic,  # noqa: TID251 - as above
    ) -> None:
        """Get a producer id. Raises WireError."""
        self._cluster, self._sleep, self._clock = cluster, sleep, clock
        self._id, self._epoch = cluster.producer_id()
        self._sequences: dict[tuple[str, int], int] = {}

    def produce(self, topic: str, partition: int, batch: bytearray) -> None:
        """Append one batch, acknowledged by all in-sync replicas.

        Raises:
            WireError: the cluster rejected it, or did not accept it within `PATIENCE_S`.
        """
        sequence = self._sequences.get((topic, partition), 0)
        struct.pack_into(">qhi", batch, _PRODUCER_AT, self._id, self._epoch, sequence)
        header = RecordBatch(batch)
        batch[_CRC_AT : _CRC_AT + 4] = header.compute_crc().to_bytes(4, "big")
        end_s, pause_s = self._clock() + PATIENCE_S, _PAUSE_S
        while True:
            reason = self._sent(topic, partition, batch)
            if reason is None:
                break
            if self._clock() >= end_s:
                raise WireError(f"{topic}-{partition}: {reason}, again and again for {PATIENCE_S:.0f} s")
            self._sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            self._cluster.refresh_if_possible()
        self._sequences[topic, partition] = increment_sequence(sequence, header.record_count)

    def _sent(self, topic: str, partition: int, batch: bytearray) -> str | None:
        """Send once; return None if the batch is in the log, else why it may be retried. Raises WireError."""
        try:
            code = self._cluster.append(topic, partition, batch)
        except OSError as error:
            self._cluster.close()
            return str(error)
        if code is None:
            return "no leader"
        if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            return None
        if code in RETRIABLE:
            return code.name
        raise WireError(f"{topic}-{partition}: {code.name}")
