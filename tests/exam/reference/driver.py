"""The reference client as a driver: correct, or with one mutation. `--mutation NAME` breaks it on purpose."""

# ruff: noqa: D102 -- the methods are the commands of the driver contract

import argparse
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tests.exam.drivers import kit
from tests.exam.reference.admin import create_topic
from tests.exam.reference.consumer import ReferenceConsumer
from tests.exam.reference.consumer_protocol import ProtocolConsumer
from tests.exam.reference.network import Network, Refused
from tests.exam.reference.producer import ReferenceProducer
from tests.exam.reference.share_consumer import ShareMember
from understudy.exam.driver import CallError, NotSupported, library_error


class ReferenceDriver(kit.Base):
    """All that the exam needs."""

    library, version = "reference", "1"
    capabilities = (
        "producer", "idempotence", "transactions", "send_offsets", "consumer", "read_committed", "offset_reset", "seek",
        "groups", "assignment", "null_values",
        "commit_offsets", "consumer_protocol", "admin", "reassign",
        "resubscribe", "max_records", "static_members", "auto_commit", "compression",
        "tls", "sasl_plain", "sasl_scram", "sasl_oauthbearer", "share_groups",
    )  # fmt: skip

    def __init__(self, mutations: frozenset[str] = frozenset()) -> None:
        self.mutations = mutations
        self.producers: dict[str, ReferenceProducer] = {}
        self.consumers: dict[str, Any] = {}

    def refusal(self, error: Exception) -> kit.Refused:
        if isinstance(error, Refused):
            return kit.Refused(error.kind, error.code, str(error))
        return super().refusal(error)

    def _network(self, bootstrap_servers: str, client_id: str, options: Mapping[str, Any]) -> Network:
        return Network(bootstrap_servers, client_id, options, self.mutations)

    def producer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        network = self._network(bootstrap_servers, client_id, options)
        self.producers[name] = ReferenceProducer(network, options)

    def send(self, producer: str, topic: str, records: Sequence[Mapping[str, Any]]) -> None:
        self.producers[producer].send(topic, records)

    def flush(self, producer: str, timeout_ms: int) -> Mapping[str, Any]:  # noqa: ARG002 - the delivery timeout ends it
        return {"outcomes": self.producers[producer].flush(), "pending": 0}

    def init_transactions(self, producer: str, timeout_ms: int) -> None:
        client = self.producers[producer]
        client.initialize(client.deadline(timeout_ms))

    def begin(self, producer: str) -> None:
        self.producers[producer].begin()

    def send_offsets(self, producer: str, consumer: str, timeout_ms: int) -> None:
        client, source = self.producers[producer], self.consumers[consumer]
        deadline = client.deadline(timeout_ms)
        group = source.options["group"]
        client.add_offsets(group, source.generation, source.member_id, source.positions, deadline)

    def commit(self, producer: str, timeout_ms: int) -> None:
        client = self.producers[producer]
        client.end(committed=True, deadline=client.deadline(timeout_ms))

    def abort(self, producer: str, timeout_ms: int) -> None:
        client = self.producers[producer]
        client.end(committed=False, deadline=client.deadline(timeout_ms))

    def consumer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        network = self._network(bootstrap_servers, client_id, options)
        kind = ProtocolConsumer if options["protocol"] == "consumer" else ReferenceConsumer
        self.consumers[name] = kind(network, options)

    def share_consumer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        self.consumers[name] = ShareMember(self._network(bootstrap_servers, client_id, options), options)

    def acknowledge(self, consumer: str, type: str, records: Sequence[Mapping[str, Any]]) -> None:
        self.consumers[consumer].acknowledge(type, records)

    def commit_acknowledgements(self, consumer: str, timeout_ms: int) -> None:  # noqa: ARG002 - it has its own
        self.consumers[consumer].commit()

    def assign(self, consumer: str, partitions: Sequence[Mapping[str, Any]]) -> None:
        self.consumers[consumer].assign({(p["topic"], p["partition"]): p["offset"] for p in partitions})

    def subscribe(self, consumer: str, topics: Sequence[str]) -> None:
        self.consumers[consumer].subscribe(topics)

    def poll(self, consumer: str, timeout_ms: int, max_records: int | None = None) -> Mapping[str, Any]:
        source = self.consumers[consumer]
        records = source.poll(timeout_ms) if max_records is None else source.poll(timeout_ms, max_records)
        errors = [self.refusal(error).as_json() for error in source.errors]
        source.errors.clear()
        return {"records": records, "errors": errors}

    def assignment(self, consumer: str) -> Mapping[str, Any]:
        return {"partitions": [{"topic": t, "partition": p} for t, p in self.consumers[consumer].positions]}

    def seek(self, consumer: str, topic: str, partition: int, offset: int) -> None:
        self.consumers[consumer].seek((topic, partition), offset)

    def commit_offsets(self, consumer: str, timeout_ms: int) -> None:  # noqa: ARG002 - the consumer has its own
        self.consumers[consumer].commit()

    def create_topic(self, bootstrap_servers: str, topic: str, partitions: int, timeout_ms: int) -> None:
        network = self._network(bootstrap_servers, "exam-admin", {"request_timeout_ms": 2_000})
        try:
            create_topic(network, topic, partitions, timeout_ms)
        finally:
            network.close()

    def close(self, name: str, timeout_ms: int) -> None:  # noqa: ARG002 - closing takes no time
        if name in self.consumers:
            self.consumers.pop(name).close()
        else:
            self.producers.pop(name).network.close()

    def close_all(self) -> None:
        """Close every connection."""
        for producer in self.producers.values():
            producer.network.close()
        for consumer in self.consumers.values():
            consumer.network.close()


class InProcess:
    """The reference driver without a process: commands and answers as in `understudy.exam.driver.Driver`."""

    def __init__(self, *mutations: str) -> None:
        self.driver = ReferenceDriver(frozenset(mutations))
        self.library, self.version = self.driver.library, self.driver.version
        self.capabilities = frozenset(self.driver.capabilities)

    def hello(self) -> None:
        """Introduced already."""

    def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
        """Run a command. Raises CallError, NotSupported."""
        answer = self.driver.answer(command, fields)
        if "unsupported" in answer:
            raise NotSupported(answer["unsupported"])
        if "error" in answer:
            raise CallError(command, library_error(answer["error"]))
        result: Mapping[str, Any] = answer["result"]
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.driver.close_all()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutation", action="append", default=[])
    ReferenceDriver(frozenset(parser.parse_args().mutation)).run()
