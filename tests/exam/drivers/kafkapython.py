"""kafka-python as a driver of `understudy exam`."""

# ruff: noqa: D102 -- the methods are the commands of the driver contract

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import kafka
from kafka import errors
from kafka.net.sasl import oauth

from tests.exam.drivers.kit import PURE_PYTHON, Base, Refused, partitions_json, polled_json, refused, sasl


class Token(oauth.AbstractTokenProvider):  # type: ignore[misc] # the library has no types
    """The token that the exam gave."""

    def __init__(self, token: str) -> None:
        self.value = token

    def token(self) -> str:
        return self.value


def security(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for TLS and SASL."""
    if "tls_ca" in options:
        return {"security_protocol": "SSL", "ssl_cafile": options["tls_ca"]}
    return sasl(options, Token)


class Driver(Base):
    """kafka-python."""

    library = "kafka-python"
    version = str(kafka.__version__)
    capabilities = PURE_PYTHON

    def __init__(self) -> None:
        self.producers: dict[str, Any] = {}
        self.consumers: dict[str, Any] = {}
        self.sent: dict[str, list[tuple[int, Any]]] = {}

    def refusal(self, error: Exception) -> Refused:
        return refused(error, errors.KafkaTimeoutError)

    def producer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        self.producers[name] = kafka.KafkaProducer(
            bootstrap_servers=bootstrap_servers.split(","),
            client_id=client_id,
            acks="all" if options["acks"] == "all" else int(options["acks"]),
            enable_idempotence=options["idempotent"],
            transactional_id=options["transactional_id"],
            transaction_timeout_ms=options["transaction_timeout_ms"],
            delivery_timeout_ms=options["delivery_timeout_ms"],
            request_timeout_ms=options["request_timeout_ms"],
            retry_backoff_ms=options["retry_backoff_ms"],
            linger_ms=options["linger_ms"],
            compression_type=None if options["compression"] == "none" else options["compression"],
            max_in_flight_requests_per_connection=options["max_in_flight"],
            max_block_ms=options["delivery_timeout_ms"],
            bootstrap_timeout_ms=options["delivery_timeout_ms"],
            **security(options),
        )
        self.sent[name] = []

    def send(self, producer: str, topic: str, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            key = None if record["key"] is None else record["key"].encode()
            value = record["value"].encode()
            future = self.producers[producer].send(topic, value, key=key, partition=record["partition"])
            self.sent[producer].append((record["id"], future))

    def flush(self, producer: str, timeout_ms: int) -> Mapping[str, Any]:
        with contextlib.suppress(errors.KafkaTimeoutError):  # what has no outcome is pending
            self.producers[producer].flush(timeout=timeout_ms / 1000)
        outcomes: list[dict[str, Any]] = []
        pending = []
        for number, future in self.sent[producer]:
            if not future.is_done:
                pending.append((number, future))
            elif future.exception is not None:
                outcomes.append({"id": number, "error": self.refusal(future.exception).as_json()})
            else:
                outcomes.append({"id": number, "offset": future.value.offset})
        self.sent[producer] = pending
        return {"outcomes": outcomes, "pending": len(pending)}

    def init_transactions(self, producer: str, timeout_ms: int) -> None:  # noqa: ARG002 - max_block_ms
        self.producers[producer].init_transactions()

    def begin(self, producer: str) -> None:
        self.producers[producer].begin_transaction()

    def send_offsets(self, producer: str, consumer: str, timeout_ms: int) -> None:  # noqa: ARG002 - max_block_ms
        source = self.consumers[consumer]
        positions = {each: kafka.OffsetAndMetadata(source.position(each), "", -1) for each in source.assignment()}
        self.producers[producer].send_offsets_to_transaction(positions, source.group_metadata())

    def commit(self, producer: str, timeout_ms: int) -> None:  # noqa: ARG002 - max_block_ms
        self.producers[producer].commit_transaction()

    def abort(self, producer: str, timeout_ms: int) -> None:  # noqa: ARG002 - max_block_ms
        self.producers[producer].abort_transaction()

    def consumer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        self.consumers[name] = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap_servers.split(","),
            client_id=client_id,
            group_id=options["group"],
            isolation_level=options["isolation"],
            auto_offset_reset=options["offset_reset"],
            enable_auto_commit=options["auto_commit"],
            group_instance_id=options["instance_id"],
            session_timeout_ms=options["session_timeout_ms"],
            heartbeat_interval_ms=options["heartbeat_interval_ms"],
            request_timeout_ms=max(options["request_timeout_ms"], options["session_timeout_ms"] + 1_000),
            fetch_max_wait_ms=100,
            bootstrap_timeout_ms=15_000,
            retry_backoff_ms=50,
            **security(options),
        )

    def assign(self, consumer: str, partitions: Sequence[Mapping[str, Any]]) -> None:
        client = self.consumers[consumer]
        places = {kafka.TopicPartition(p["topic"], p["partition"]): p["offset"] for p in partitions}
        client.assign(list(places))
        for place, offset in places.items():
            client.seek(place, offset)

    def subscribe(self, consumer: str, topics: Sequence[str]) -> None:
        client = self.consumers[consumer]
        client.subscribe(list(topics))
        # A member that joins before it knows its topics' partitions is given none and joins again; it stops for good if
        # a poll ends meanwhile. groups/subscription-grows shows that; the other scenarios are about other things.
        client.topics()

    def poll(self, consumer: str, timeout_ms: int, max_records: int | None = None) -> Mapping[str, Any]:
        try:
            polled = self.consumers[consumer].poll(timeout_ms=timeout_ms, max_records=max_records)
        except errors.KafkaError as error:
            return {"records": [], "errors": [self.refusal(error).as_json()]}
        return polled_json(polled)

    def assignment(self, consumer: str) -> Mapping[str, Any]:
        return partitions_json(self.consumers[consumer].assignment())

    def seek(self, consumer: str, topic: str, partition: int, offset: int) -> None:
        self.consumers[consumer].seek(kafka.TopicPartition(topic, partition), offset)

    def commit_offsets(self, consumer: str, timeout_ms: int) -> None:
        self.consumers[consumer].commit(timeout_ms=timeout_ms)

    def create_topic(self, bootstrap_servers: str, topic: str, partitions: int, timeout_ms: int) -> None:
        admin = kafka.KafkaAdminClient(
            bootstrap_servers=bootstrap_servers.split(","),
            client_id="exam-admin",
            request_timeout_ms=2_000,
            retry_backoff_ms=50,
        )
        try:
            admin.create_topics({topic: {"num_partitions": partitions}}, timeout_ms=timeout_ms)
        finally:
            admin.close()

    def close(self, name: str, timeout_ms: int) -> None:  # noqa: ARG002 - a close waits for what is in flight
        if name in self.consumers:
            self.consumers.pop(name).close()
        else:
            self.producers.pop(name).close(timeout=5)


if __name__ == "__main__":
    Driver().run()
