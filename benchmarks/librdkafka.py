"""librdkafka at the speed of C: the library inside confluent-kafka, driven by ctypes, without Python code per record.

A throughput row has to measure the broker. confluent-kafka creates a Python object for each record that it reads, and
reads a dict for each that it writes, which costs more than the broker's share of the work. Here records are passed ten
thousand at a time (`rd_kafka_produce_batch`), acknowledgements are events with a count, and consumed records are
counted and dropped inside the library. Latencies are measured with the same two classes, one record at a time.
"""

import ctypes
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import cimpl

_PRODUCER, _CONSUMER = 0, 1
_DELIVERY_REPORT, _ERROR = 0x1, 0x8  # the events of rdkafka.h that a producer enables
_CHUNK = 10_000  # records passed at once
_TEXT = 512

EARLIEST = -2
QUIET = {"log_level": 3}  # errors only: disconnected clients are expected here


class ClientError(Exception):
    """Error or timeout of librdkafka, as in the message."""


class _Message(ctypes.Structure):
    """rd_kafka_message_t."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


class _TopicPartition(ctypes.Structure):
    """rd_kafka_topic_partition_t."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_void_p),
        ("metadata_size", ctypes.c_size_t),
        ("opaque", ctypes.c_void_p),
        ("err", ctypes.c_int),
        ("private", ctypes.c_void_p),
    )


# Symbols are looked up in the extension module, which has the library mapped on every platform.
_LIB = ctypes.CDLL(cimpl.__file__)
_POINTERS = (
    "conf_new",
    "new",
    "topic_new",
    "queue_get_main",
    "queue_get_consumer",
    "queue_poll",
    "event_message_next",
    "topic_partition_list_new",
    "topic_partition_list_add",
    "mock_cluster_new",
)
for _name in _POINTERS:
    getattr(_LIB, f"rd_kafka_{_name}").restype = ctypes.c_void_p
for _name in ("version_str", "err2str", "event_error_string", "mock_cluster_bootstraps"):
    getattr(_LIB, f"rd_kafka_{_name}").restype = ctypes.c_char_p
_LIB.rd_kafka_event_message_count.restype = ctypes.c_size_t
# Only reads a field of a record: the callback for each consumed record.
_LOOK = ctypes.cast(_LIB.rd_kafka_message_leader_epoch, ctypes.c_void_p)


def version() -> str:
    """Return the library's own version text."""
    return str(_LIB.rd_kafka_version_str().decode())


def _error(code: int) -> str:
    return str(_LIB.rd_kafka_err2str(code).decode())


class _Handle:
    """Client with settings by librdkafka's names, closed at the end of a `with`."""

    def __init__(self, kind: int, settings: Mapping[str, object], *, events: int = 0) -> None:
        conf, text = _LIB.rd_kafka_conf_new(), ctypes.create_string_buffer(_TEXT)
        for name, value in settings.items():
            if _LIB.rd_kafka_conf_set(_p(conf), name.encode(), str(value).encode(), text, ctypes.c_size_t(_TEXT)):
                raise ClientError(text.value.decode())
        if events:
            _LIB.rd_kafka_conf_set_events(_p(conf), events)
        self._rk = _p(_LIB.rd_kafka_new(kind, _p(conf), text, ctypes.c_size_t(_TEXT)))
        if not self._rk.value:
            raise ClientError(text.value.decode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the client, its threads and its connections."""
        if self._rk.value:
            _LIB.rd_kafka_destroy_flags(self._rk, 0)
            self._rk = ctypes.c_void_p()

    def end_offset(self, topic: str) -> int:
        """Request the high watermark of partition 0 from the broker."""
        low, high = ctypes.c_int64(), ctypes.c_int64()
        code = _LIB.rd_kafka_query_watermark_offsets(
            self._rk, topic.encode(), 0, ctypes.byref(low), ctypes.byref(high), 10_000
        )
        if code:
            raise ClientError(f"watermarks of {topic}: {_error(code)}")
        return high.value


def _p(address: Any) -> ctypes.c_void_p:
    """Wrap a pointer, so that it is not truncated to an int."""
    return ctypes.c_void_p(address)


class Producer(_Handle):
    """Sends records to one topic and counts acknowledgements."""

    partition = 0

    def __init__(self, bootstrap: str, topic: str, payloads: Sequence[bytes], **settings: object) -> None:
        own = {
            "bootstrap.servers": bootstrap,
            **QUIET,
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        super().__init__(_PRODUCER, own, events=_DELIVERY_REPORT | _ERROR)
        self._queue = _p(_LIB.rd_kafka_queue_get_main(self._rk))
        self._topic = _p(_LIB.rd_kafka_topic_new(self._rk, topic.encode(), None))
        # The payloads must not move, because librdkafka does not copy them.
        self._buffers = [ctypes.create_string_buffer(payload, len(payload)) for payload in payloads]
        self._messages = (_Message * _CHUNK)()
        for index in range(_CHUNK):
            buffer = self._buffers[index % len(self._buffers)]
            self._messages[index].payload = ctypes.addressof(buffer)
            self._messages[index].len = len(buffer)
        self.last_error = ""

    def close(self) -> None:
        """Close the client; unsent records are lost."""
        if self._rk.value:
            _LIB.rd_kafka_topic_destroy(self._topic)
            _LIB.rd_kafka_queue_destroy(self._queue)
            _LIB.rd_kafka_purge(self._rk, 3)
        super().close()

    def send(self, count: int, timeout_s: float) -> float:
        """Send `count` records and wait for their acknowledgements; return the seconds that it took."""
        begun = time.perf_counter()
        deadline = begun + timeout_s
        sent = acknowledged = 0
        while acknowledged < count:
            if sent < count:
                sent += self.hand_over(min(_CHUNK, count - sent))
            acknowledged += self._acknowledged(0 if sent < count else 100)
            if time.perf_counter() > deadline:
                raise ClientError(f"{acknowledged} of {count} records acknowledged in {timeout_s} s; {self.last_error}")
        return time.perf_counter() - begun

    def send_one(self) -> float:
        """Send one record and wait for its acknowledgement; return the seconds that it took."""
        begun = time.perf_counter()
        if self.hand_over(1) != 1:
            raise ClientError("a record was refused")
        self.settle(1)
        return time.perf_counter() - begun

    def settle(self, count: int, timeout_s: float = 10) -> None:
        """Wait for `count` acknowledgements; raises ClientError when the time is up."""
        deadline = time.perf_counter() + timeout_s
        while count > 0:
            count -= self._acknowledged(1000)
            if time.perf_counter() > deadline:
                raise ClientError(f"{count} records not acknowledged in {timeout_s} s; {self.last_error}")

    def hand_over(self, count: int) -> int:
        """Pass `count` records (at most ten thousand) to librdkafka; return how many it accepted."""
        return int(_LIB.rd_kafka_produce_batch(self._topic, self.partition, 0, self._messages, count))

    def _acknowledged(self, timeout_ms: int) -> int:
        event = _p(_LIB.rd_kafka_queue_poll(self._queue, timeout_ms))
        if not event.value:
            return 0
        count = 0
        if _LIB.rd_kafka_event_type(event) == _DELIVERY_REPORT:
            count = int(_LIB.rd_kafka_event_message_count(event))
            first = _LIB.rd_kafka_event_message_next(event)
            code = ctypes.cast(first, ctypes.POINTER(_Message)).contents.err  # one event, one batch, one outcome
            if code:
                raise ClientError(f"{count} records failed: {_error(code)}")
        else:
            self.last_error = _LIB.rd_kafka_event_error_string(event).decode()
        _LIB.rd_kafka_event_destroy(event)
        return count


class Consumer(_Handle):
    """Reads partition 0 of one topic from an offset on and counts records."""

    def __init__(self, bootstrap: str, topic: str, offset: int = EARLIEST, **settings: object) -> None:
        own = {
            "bootstrap.servers": bootstrap,
            **QUIET,
            "group.id": "bench-unused",
            "enable.auto.commit": "false",
            "auto.offset.reset": "error",
            "check.crcs": "false",
            "queued.min.messages": 1_000_000,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        super().__init__(_CONSUMER, own)
        _LIB.rd_kafka_poll_set_consumer(self._rk)
        self._queue = _p(_LIB.rd_kafka_queue_get_consumer(self._rk))
        self._partitions = _p(_LIB.rd_kafka_topic_partition_list_new(1))
        added = _LIB.rd_kafka_topic_partition_list_add(self._partitions, topic.encode(), 0)
        self._entry = ctypes.cast(_p(added), ctypes.POINTER(_TopicPartition))
        self._entry.contents.offset = offset
        if code := _LIB.rd_kafka_assign(self._rk, self._partitions):
            raise ClientError(f"assign: {_error(code)}")

    def close(self) -> None:
        """Close the client."""
        if self._rk.value:
            _LIB.rd_kafka_topic_partition_list_destroy(self._partitions)
            _LIB.rd_kafka_queue_destroy(self._queue)
        super().close()

    def read(self, timeout_ms: int) -> int:
        """Consume received records and events, waiting at most `timeout_ms` for the first; return their number."""
        return int(_LIB.rd_kafka_consume_callback_queue(self._queue, timeout_ms, _LOOK, None))

    def check_to(self, end: int, sizes: Sequence[int], timeout_s: float) -> int:
        """Read until the position is `end`, and check each record: no error, no gap, the payload's size as sent.

        `sizes` are those of consecutive records, repeated. Returns the number of records; raises ClientError.
        """
        deadline = time.perf_counter() + timeout_s
        messages, expected = (ctypes.POINTER(_Message) * _CHUNK)(), 0
        while expected < end:
            count = int(_LIB.rd_kafka_consume_batch_queue(self._queue, 100, messages, ctypes.c_size_t(_CHUNK)))
            for index in range(count):
                message = messages[index].contents
                if message.err or message.offset != expected or message.len != sizes[expected % len(sizes)]:
                    raise ClientError(f"record {expected} is not as sent: offset {message.offset}, {message.len} bytes")
                expected += 1
                _LIB.rd_kafka_message_destroy(messages[index])
            if time.perf_counter() > deadline:
                raise ClientError(f"{expected} of {end} records read in {timeout_s} s")
        return expected

    def position(self) -> int:
        """Return the offset after the last record read, negative before the first."""
        if code := _LIB.rd_kafka_position(self._rk, self._partitions):
            raise ClientError(f"position: {_error(code)}")
        return int(self._entry.contents.offset)

    def read_to(self, end: int, timeout_s: float) -> None:
        """Read until the position is `end`; raises ClientError when the time is up."""
        deadline = time.perf_counter() + timeout_s
        while (position := self.position()) < end:
            self.read(100)
            if time.perf_counter() > deadline:
                raise ClientError(f"at offset {position} of {end} after {timeout_s} s")


class Mock(_Handle):
    """librdkafka's mock cluster of one broker, which runs in its threads and listens at `bootstrap`."""

    def __init__(self) -> None:
        super().__init__(_PRODUCER, dict(QUIET))
        self._cluster = _p(_LIB.rd_kafka_mock_cluster_new(self._rk, 1))
        self.bootstrap = str(_LIB.rd_kafka_mock_cluster_bootstraps(self._cluster).decode())

    def close(self) -> None:
        """Stop the mock cluster."""
        if self._rk.value:
            _LIB.rd_kafka_mock_cluster_destroy(self._cluster)
        super().close()
