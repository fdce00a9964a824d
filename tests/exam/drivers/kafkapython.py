"""kafka-python as a driver of `understudy exam`."""

# ruff: noqa: D102 -- the methods are the commands of the driver contract

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import kafka
from kafka import errors
from kafka.net.sasl import oauth

from tests.exam.drivers.kit import (
    PURE_PYTHON,
    Base,
    Refused,
    headers_of,
    partitions_json,
    polled_json,
    raw,
    refused,
    sasl,
)


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


# --- an administrator: the commands of tests/clients/script.py ---------------------------------------------------


@contextlib.contextmanager
def administrator(bootstrap_servers: str, timeout_ms: int) -> Iterator[Any]:
    """The library's client of an administrator."""
    client = kafka.KafkaAdminClient(
        bootstrap_servers=bootstrap_servers.split(","),
        client_id="exam-admin",
        request_timeout_ms=max(2_000, timeout_ms - 15_000),
        retry_backoff_ms=50,
    )
    with contextlib.closing(client):
        yield client


def reader(bootstrap_servers: str, timeout_ms: int, **options: Any) -> "contextlib.closing[Any]":
    """A consumer that asks for offsets."""
    servers = bootstrap_servers.split(",")
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers, enable_auto_commit=False, bootstrap_timeout_ms=timeout_ms, **options
    )
    return contextlib.closing(consumer)


def checked(answers: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise unless the library answered that all is well."""
    if answers != wanted:
        raise Refused("other", None, str(answers))


class Administrator:
    """The commands, each with a client of its own."""

    def create_topic(
        self, bootstrap_servers: str, topic: str, partitions: int, timeout_ms: int, **replicas: int
    ) -> None:
        options = {"num_partitions": partitions}
        if replicas:
            options["replication_factor"] = replicas["replicas"]
        with administrator(bootstrap_servers, timeout_ms) as client:
            client.create_topics({topic: options}, timeout_ms=timeout_ms)

    def list_topics(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        with administrator(bootstrap_servers, timeout_ms) as client:
            return {"topics": list(client.list_topics())}

    def describe_topic(self, bootstrap_servers: str, topic: str, timeout_ms: int) -> Mapping[str, Any]:
        with administrator(bootstrap_servers, timeout_ms) as client:
            (described,) = client.describe_topics([topic])
        partitions = [
            {
                "partition": each["partition_index"],
                "leader": each["leader_id"],
                "replicas": each["replica_nodes"],
                "isr": each["isr_nodes"],
            }
            for each in described["partitions"]
        ]
        return {"partitions": partitions}

    def delete_topic(self, bootstrap_servers: str, topic: str, timeout_ms: int) -> None:
        with administrator(bootstrap_servers, timeout_ms) as client:
            client.delete_topics([topic])

    def list_groups(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        with administrator(bootstrap_servers, timeout_ms) as client:
            return {"groups": [group["group_id"] for group in client.list_groups()]}

    def describe_group(self, bootstrap_servers: str, group: str, timeout_ms: int) -> Mapping[str, Any]:
        with administrator(bootstrap_servers, timeout_ms) as client:
            described = client.describe_groups([group])[group]
        if described["error"] is not None:
            raise Refused("other", None, str(described["error"]))
        return {"state": described["group_state"], "members": len(described["members"])}

    def delete_group(self, bootstrap_servers: str, group: str, timeout_ms: int) -> None:
        with administrator(bootstrap_servers, timeout_ms) as client:
            checked(client.delete_groups([group]), {group: "OK"})

    def committed(
        self, bootstrap_servers: str, group: str, topic: str, partitions: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        places = [kafka.TopicPartition(topic, index) for index in range(partitions)]
        with reader(bootstrap_servers, timeout_ms, group_id=group) as consumer:
            offsets = [consumer.committed(place) for place in places]
        return {"offsets": [-1 if offset is None else offset for offset in offsets]}

    def describe_cluster(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        with administrator(bootstrap_servers, timeout_ms) as client:
            cluster = client.describe_cluster()
        key = "node_id" if "node_id" in cluster["brokers"][0] else "broker_id"
        return {"brokers": [broker[key] for broker in cluster["brokers"]], "controller": cluster["controller_id"]}

    def describe_configs(self, bootstrap_servers: str, kind: str, name: str, timeout_ms: int) -> Mapping[str, Any]:
        resource = kafka.admin.ConfigResource(kind, name)
        with administrator(bootstrap_servers, timeout_ms) as client:
            described = client.describe_configs([resource], config_filter="all")[kind][name]
        return {"settings": {key: entry["value"] for key, entry in described.items()}}

    def alter_config(
        self, bootstrap_servers: str, topic: str, setting: str, value: str | None, timeout_ms: int
    ) -> None:
        operation = ("DELETE", None) if value is None else ("SET", value)
        resource = kafka.admin.ConfigResource("topic", topic, {setting: operation})
        with administrator(bootstrap_servers, timeout_ms) as client:
            checked(client.alter_configs([resource], incremental=True), {"topic": {topic: "OK"}})

    def delete_records(
        self, bootstrap_servers: str, topic: str, partition: int, offset: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        place = kafka.TopicPartition(topic, partition)
        with administrator(bootstrap_servers, timeout_ms) as client:
            return {"low": int(client.delete_records({place: offset})[place]["low_watermark"])}

    def list_offsets(
        self, bootstrap_servers: str, topic: str, partitions: int, timestamp: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        places = [kafka.TopicPartition(topic, index) for index in range(partitions)]
        with reader(bootstrap_servers, timeout_ms) as consumer:
            if timestamp < 0:
                return {"offsets": [consumer.beginning_offsets([place])[place] for place in places]}
            by_time = consumer.offsets_for_times(dict.fromkeys(places, timestamp))
        return {"offsets": [by_time[place].offset for place in places]}


class Driver(Administrator, Base):
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
            future = self.producers[producer].send(
                topic,
                raw(record["value"]),
                key=raw(record["key"]),
                partition=record["partition"],
                timestamp_ms=record.get("timestamp"),
                headers=headers_of(record),
            )
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

    def commit_offsets(
        self, consumer: str, timeout_ms: int, offsets: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        chosen = None
        if offsets is not None:
            chosen = {
                kafka.TopicPartition(each["topic"], each["partition"]): kafka.OffsetAndMetadata(each["offset"], "", -1)
                for each in offsets
            }
        self.consumers[consumer].commit(chosen, timeout_ms=timeout_ms)

    def close(self, name: str, timeout_ms: int) -> None:  # noqa: ARG002 - a close waits for what is in flight
        if name in self.consumers:
            self.consumers.pop(name).close()
        else:
            self.producers.pop(name).close(timeout=5)


if __name__ == "__main__":
    Driver().run()
