"""librdkafka, through confluent-kafka, as a driver of `understudy exam`."""

# ruff: noqa: D102 -- the methods are the commands of the driver contract

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.exam.drivers.confluent_admin import Administrator
from tests.exam.drivers.kit import SECURED, Base, Refused, expiry, headers_of, record_json

if hasattr(confluent_kafka, "ShareConsumer"):  # since 2.15
    from tests.exam.drivers.confluent_share import ShareMember


def refused(error: KafkaError) -> Refused:
    """librdkafka's error, classified as it classifies it."""
    if error.fatal() or error.code() in {KafkaError._FENCED, KafkaError._FATAL}:
        kind = "fatal"
    elif error.txn_requires_abort():
        kind = "abortable"
    elif error.code() in {KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT}:
        kind = "timeout"
    else:
        kind = "retriable" if error.retriable() else "other"
    return Refused(kind, error.name(), error.str())


def places_of(places: Sequence[Mapping[str, Any]]) -> list[TopicPartition]:
    """Partitions with offsets, as the library takes them."""
    return [TopicPartition(each["topic"], each["partition"], each["offset"]) for each in places]


def noted(causes: list[str]) -> Callable[[KafkaError], None]:
    """A callback for errors that keeps why a broker and the client do not trust each other."""

    def failed(error: KafkaError) -> None:
        if error.code() in {KafkaError._AUTHENTICATION, KafkaError._SSL}:
            causes.append(str(error.str()))

    return failed


def security(options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of TLS and SASL."""
    if "tls_ca" in options:
        return {"security.protocol": "SSL", "ssl.ca.location": options["tls_ca"]}
    if "sasl_mechanism" not in options:
        return {}
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": options["sasl_mechanism"]}
    if "sasl_token" in options:
        token = options["sasl_token"]
        return {**settings, "oauth_cb": lambda _config: (token, expiry(token), "alice", {})}
    return {**settings, "sasl.username": options["sasl_username"], "sasl.password": options["sasl_password"]}


class Driver(Administrator, Base):
    """confluent-kafka."""

    library = "librdkafka"
    version = str(confluent_kafka.libversion()[0])
    capabilities = (
        "producer", "idempotence", "transactions", "send_offsets", "consumer", "read_committed", "offset_reset", "seek",
        "reassign", "resubscribe", "max_records", "compression", "null_values",
        "groups", "assignment", "static_members", "consumer_protocol", "commit_offsets", "auto_commit", "share_groups",
        "admin",
        *SECURED,
    )  # fmt: skip

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}
        self.outcomes: dict[str, list[tuple[int, KafkaError | None, Any]]] = {}
        self.causes: dict[str, list[str]] = {}

    def refusal(self, error: Exception) -> Refused:
        if isinstance(error, KafkaException):
            return refused(error.args[0])
        return super().refusal(error)

    # --- producers ---------------------------------------------------------------------------------------------------

    def producer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": client_id,
            "acks": options["acks"],
            "enable.idempotence": options["idempotent"],
            "message.timeout.ms": options["delivery_timeout_ms"],
            "request.timeout.ms": options["request_timeout_ms"],
            "socket.timeout.ms": max(options["request_timeout_ms"], 300),
            "retry.backoff.ms": options["retry_backoff_ms"],
            "linger.ms": options["linger_ms"],
            "max.in.flight.requests.per.connection": options["max_in_flight"],
            "compression.type": options["compression"],
            "topic.metadata.refresh.fast.interval.ms": 50,
            "reconnect.backoff.max.ms": 500,
        }
        if options["transactional_id"]:
            settings["transactional.id"] = options["transactional_id"]
            settings["transaction.timeout.ms"] = options["transaction_timeout_ms"]
            settings["message.timeout.ms"] = min(options["delivery_timeout_ms"], options["transaction_timeout_ms"])
        causes = self.causes[name] = list[str]()
        self.clients[name] = Producer({**settings, **security(options), "error_cb": noted(causes)})
        self.outcomes[name] = []

    def send(self, producer: str, topic: str, records: Sequence[Mapping[str, Any]]) -> None:
        outcomes = self.outcomes[producer]
        for record in records:
            number = record["id"]

            # It keeps the error as it is: where one is fatal, 2.16 calls this with an exception that is raised already.
            def delivered(error: KafkaError | None, message: Any, number: int = number) -> None:
                outcomes.append((number, error, message))

            chosen = {"timestamp": record["timestamp"]} if "timestamp" in record else {}
            try:
                self.clients[producer].produce(
                    topic,
                    record["value"],
                    key=record["key"],
                    partition=record["partition"],
                    headers=headers_of(record),
                    on_delivery=delivered,
                    **chosen,
                )
            except KafkaException as error:  # in a transaction that has failed already
                outcomes.append((number, error.args[0], None))
        self.clients[producer].poll(0)

    def flush(self, producer: str, timeout_ms: int) -> Mapping[str, Any]:
        pending = self.clients[producer].flush(timeout_ms / 1000)
        outcomes, self.outcomes[producer][:] = [self._outcome(producer, *each) for each in self.outcomes[producer]], []
        return {"outcomes": outcomes, "pending": pending}

    def _outcome(self, producer: str, number: int, error: KafkaError | None, message: Any) -> Mapping[str, Any]:
        if error is None:
            return {"id": number, "offset": message.offset()}
        refusal = refused(error)
        refusal.message = "; ".join([refusal.message, *self.causes[producer][-1:]])
        return {"id": number, "error": refusal.as_json()}

    def init_transactions(self, producer: str, timeout_ms: int) -> None:
        self._retried(self.clients[producer].init_transactions, timeout_ms)

    def begin(self, producer: str) -> None:
        self.clients[producer].begin_transaction()

    def send_offsets(self, producer: str, consumer: str, timeout_ms: int) -> None:
        source = self.clients[consumer]
        positions = [each for each in source.position(source.assignment()) if each.offset >= 0]
        metadata = source.consumer_group_metadata()
        self._retried(
            lambda left: self.clients[producer].send_offsets_to_transaction(positions, metadata, left), timeout_ms
        )

    def commit(self, producer: str, timeout_ms: int) -> None:
        self._retried(self.clients[producer].commit_transaction, timeout_ms)

    def abort(self, producer: str, timeout_ms: int) -> None:
        self._retried(self.clients[producer].abort_transaction, timeout_ms)

    def _retried(self, call: Any, timeout_ms: int) -> None:
        """Call again on retriable errors, as librdkafka's documentation asks applications to."""
        until = time.monotonic() + timeout_ms / 1000
        while True:
            try:
                call(max(until - time.monotonic(), 0.001))
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise
                threading.Event().wait(0.05)
            else:
                return

    # --- consumers ---------------------------------------------------------------------------------------------------

    def consumer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": client_id,
            "group.id": options["group"] or f"without-a-group-{name}",
            "isolation.level": options["isolation"],
            "auto.offset.reset": "error" if options["offset_reset"] == "none" else options["offset_reset"],
            "enable.auto.commit": options["auto_commit"],
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "socket.timeout.ms": max(options["request_timeout_ms"], 300),
            "topic.metadata.refresh.fast.interval.ms": 50,
            "reconnect.backoff.max.ms": 500,
        }
        if options["protocol"] == "consumer":
            settings["group.protocol"] = "consumer"
        else:
            settings["session.timeout.ms"] = options["session_timeout_ms"]
            settings["heartbeat.interval.ms"] = options["heartbeat_interval_ms"]
        if options["instance_id"]:
            settings["group.instance.id"] = options["instance_id"]
        causes = self.causes[name] = list[str]()
        self.clients[name] = Consumer({**settings, **security(options), "error_cb": noted(causes)})

    def assign(self, consumer: str, partitions: Sequence[Mapping[str, Any]]) -> None:
        self.clients[consumer].assign(places_of(partitions))

    def subscribe(self, consumer: str, topics: list[str]) -> None:
        self.clients[consumer].subscribe(topics)

    def poll(self, consumer: str, timeout_ms: int, max_records: int | None = None) -> Mapping[str, Any]:
        if not isinstance(self.clients[consumer], Consumer):
            return cast("Mapping[str, Any]", self.clients[consumer].poll(timeout_ms))
        records, errors = [], []
        message = self.clients[consumer].poll(timeout_ms / 1000)
        while message is not None:
            if message.error() is None:
                place = message.topic(), message.partition(), message.offset()
                time_ms = message.timestamp()[1]
                records.append(record_json(place, message.key(), message.value(), time_ms, message.headers()))
            else:
                errors.append(refused(message.error()).as_json())
            message = None if len(records) == max_records else self.clients[consumer].poll(0)
        errors += [Refused("other", None, cause).as_json() for cause in self.causes[consumer]]
        self.causes[consumer].clear()
        return {"records": records, "errors": errors}

    def assignment(self, consumer: str) -> Mapping[str, Any]:
        assigned = self.clients[consumer].assignment()
        return {"partitions": [{"topic": each.topic, "partition": each.partition} for each in assigned]}

    def seek(self, consumer: str, topic: str, partition: int, offset: int) -> None:
        self.clients[consumer].seek(TopicPartition(topic, partition, offset))

    def commit_offsets(
        self,
        consumer: str,
        timeout_ms: int,  # noqa: ARG002 - librdkafka has its own
        offsets: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        chosen = {} if offsets is None else {"offsets": places_of(offsets)}
        for each in self.clients[consumer].commit(asynchronous=False, **chosen) or ():
            if each.error is not None:
                raise refused(each.error)

    # --- share groups ------------------------------------------------------------------------------------------------

    def share_consumer(
        self, name: str, bootstrap_servers: str, client_id: str, group: str, request_timeout_ms: int
    ) -> None:
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": client_id,
            "group.id": group,
            "fetch.wait.max.ms": 100,
            "socket.timeout.ms": max(request_timeout_ms, 300),
            "topic.metadata.refresh.fast.interval.ms": 50,
            "retry.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
        }
        self.clients[name] = ShareMember(settings, refused)

    def acknowledge(self, consumer: str, type: str, records: Sequence[Mapping[str, Any]]) -> None:
        self.clients[consumer].acknowledge(type, records)

    def commit_acknowledgements(self, consumer: str, timeout_ms: int) -> None:
        self.clients[consumer].commit(timeout_ms)

    # --- the rest ----------------------------------------------------------------------------------------------------

    def close(self, name: str, timeout_ms: int) -> None:  # noqa: ARG002 - librdkafka's close has no timeout
        client = self.clients.pop(name)
        if not isinstance(client, Producer):
            client.close()


if __name__ == "__main__":
    Driver().run()
