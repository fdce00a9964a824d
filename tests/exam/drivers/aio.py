"""aiokafka as a driver of `understudy exam`."""

# ruff: noqa: D102, ARG002 -- the methods are the commands of the driver contract

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiokafka
from aiokafka import admin, errors, helpers, structs
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.exam.drivers.kit import (
    PURE_PYTHON,
    Base,
    Refused,
    Unsupported,
    headers_of,
    partitions_json,
    polled_json,
    raw,
    refused,
    sasl,
)


class Token(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc] # the library has no types
    """The token that the exam gave."""

    def __init__(self, token: str) -> None:
        self.value = token

    async def token(self) -> str:
        return self.value


def security(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for TLS and SASL."""
    if "tls_ca" in options:
        return {"security_protocol": "SSL", "ssl_context": helpers.create_ssl_context(cafile=options["tls_ca"])}
    return sasl(options, Token)


@contextlib.asynccontextmanager
async def administrator(bootstrap_servers: str, timeout_ms: int) -> AsyncIterator[Any]:
    """The library's client of an administrator."""
    client = admin.AIOKafkaAdminClient(
        bootstrap_servers=bootstrap_servers,
        client_id="exam-admin",
        request_timeout_ms=max(2_000, timeout_ms - 15_000),
        retry_backoff_ms=50,
    )
    await client.start()
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def reader(bootstrap_servers: str, **options: Any) -> AsyncIterator[Any]:
    """A consumer that asks for offsets."""
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, enable_auto_commit=False, **options)
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


def check(code: int) -> None:
    """Raise for an error code, which the library returns and does not raise."""
    if code:
        raise errors.for_code(code)


class Administrator:
    """The commands of an administrator, each with a client of its own: those of tests/clients/script.py."""

    altered: Mapping[str, str] = {}
    """The topic's settings that were set: the library has AlterConfigs only, which replaces all."""

    async def create_topic(
        self, bootstrap_servers: str, topic: str, partitions: int, timeout_ms: int, replicas: int = 3
    ) -> None:
        async with administrator(bootstrap_servers, timeout_ms) as client:
            answer = await client.create_topics([admin.NewTopic(topic, partitions, replicas)], timeout_ms)
        for _, code, *_ in answer.topic_errors:
            check(code)

    async def list_topics(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        async with administrator(bootstrap_servers, timeout_ms) as client:
            return {"topics": list(await client.list_topics())}

    async def describe_topic(self, bootstrap_servers: str, topic: str, timeout_ms: int) -> Mapping[str, Any]:
        async with administrator(bootstrap_servers, timeout_ms) as client:
            (described,) = await client.describe_topics([topic])
        fields = ("partition", "leader", "replicas", "isr")
        return {"partitions": [{name: each[name] for name in fields} for each in described["partitions"]]}

    async def delete_topic(self, bootstrap_servers: str, topic: str, timeout_ms: int) -> None:
        async with administrator(bootstrap_servers, timeout_ms) as client:
            answer = await client.delete_topics([topic])
        for _, code in answer.topic_error_codes:
            check(code)

    async def list_groups(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        async with administrator(bootstrap_servers, timeout_ms) as client:
            return {"groups": [group[0] for group in await client.list_consumer_groups()]}

    async def describe_group(self, bootstrap_servers: str, group: str, timeout_ms: int) -> Mapping[str, Any]:
        async with administrator(bootstrap_servers, timeout_ms) as client:
            (response,) = await client.describe_consumer_groups([group])
        described = response.to_object()["groups"][0]
        check(described["error_code"])
        return {"state": described["state"], "members": len(described["members"])}

    def delete_group(self, **_: Any) -> None:
        raise Unsupported("AIOKafkaAdminClient has no call for DeleteGroups")

    async def committed(
        self, bootstrap_servers: str, group: str, topic: str, partitions: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        places = [structs.TopicPartition(topic, index) for index in range(partitions)]
        async with reader(bootstrap_servers, group_id=group) as consumer:
            consumer.assign(places)
            offsets = [await consumer.committed(each) for each in places]
        return {"offsets": [-1 if offset is None else offset for offset in offsets]}

    async def describe_cluster(self, bootstrap_servers: str, timeout_ms: int) -> Mapping[str, Any]:
        async with administrator(bootstrap_servers, timeout_ms) as client:
            cluster = await client.describe_cluster()
        return {"brokers": [each["node_id"] for each in cluster["brokers"]], "controller": cluster["controller_id"]}

    async def describe_configs(
        self, bootstrap_servers: str, kind: str, name: str, timeout_ms: int
    ) -> Mapping[str, Any]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        async with administrator(bootstrap_servers, timeout_ms) as client:
            (response,) = await client.describe_configs([resource])
        described = response.to_object()["resources"][0]
        check(described["error_code"])
        return {"settings": {entry["config_names"]: entry["config_value"] for entry in described["config_entries"]}}

    async def alter_config(
        self, bootstrap_servers: str, topic: str, setting: str, value: str | None, timeout_ms: int
    ) -> None:
        others = {name: each for name, each in self.altered.items() if name != setting}
        self.altered = others if value is None else {**others, setting: value}
        async with administrator(bootstrap_servers, timeout_ms) as client:
            (response,) = await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, self.altered)])
        check(response.resources[0][0])

    async def delete_records(
        self, bootstrap_servers: str, topic: str, partition: int, offset: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        place = structs.TopicPartition(topic, partition)
        async with administrator(bootstrap_servers, timeout_ms) as client:
            return {"low": int((await client.delete_records({place: admin.RecordsToDelete(offset)}))[place])}

    async def list_offsets(
        self, bootstrap_servers: str, topic: str, partitions: int, timestamp: int, timeout_ms: int
    ) -> Mapping[str, Any]:
        places = [structs.TopicPartition(topic, index) for index in range(partitions)]
        async with reader(bootstrap_servers) as consumer:
            if timestamp < 0:
                earliest = await consumer.beginning_offsets(places)
                return {"offsets": [earliest[each] for each in places]}
            by_time = await consumer.offsets_for_times(dict.fromkeys(places, timestamp))
        return {"offsets": [by_time[each].offset for each in places]}


class Driver(Administrator, Base):
    """aiokafka: each method returns a coroutine, which the loop below awaits."""

    library = "aiokafka"
    version = str(aiokafka.__version__)
    capabilities = PURE_PYTHON

    def __init__(self) -> None:
        self.producers: dict[str, Any] = {}
        self.consumers: dict[str, Any] = {}
        self.sent: dict[str, list[tuple[int, asyncio.Task[Any]]]] = {}

    def refusal(self, error: Exception) -> Refused:
        return refused(error, errors.KafkaTimeoutError, TimeoutError)

    async def producer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        client = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            acks="all" if options["acks"] == "all" else int(options["acks"]),
            enable_idempotence=options["idempotent"] or options["transactional_id"] is not None,
            transactional_id=options["transactional_id"],
            transaction_timeout_ms=options["transaction_timeout_ms"],
            # Its batches expire by the request timeout: it has no delivery timeout.
            request_timeout_ms=options["request_timeout_ms"],
            retry_backoff_ms=options["retry_backoff_ms"],
            linger_ms=options["linger_ms"],
            compression_type=None if options["compression"] == "none" else options["compression"],
            metadata_max_age_ms=5_000,
            **security(options),
        )
        self.producers[name], self.sent[name] = client, []
        if options["transactional_id"] is None:
            await client.start()

    async def send(self, producer: str, topic: str, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            sent = await self.producers[producer].send(
                topic,
                raw(record["value"]),
                key=raw(record["key"]),
                partition=record["partition"],
                timestamp_ms=record.get("timestamp"),
                headers=headers_of(record),
            )
            self.sent[producer].append((record["id"], sent))

    async def flush(self, producer: str, timeout_ms: int) -> Mapping[str, Any]:
        waiting = [future for _, future in self.sent[producer]]
        if waiting:
            await asyncio.wait(waiting, timeout=timeout_ms / 1000)
        outcomes: list[dict[str, Any]] = []
        pending = []
        for number, future in self.sent[producer]:
            if not future.done():
                pending.append((number, future))
                continue
            error = future.exception()
            if error is not None:
                outcomes.append(
                    {
                        "id": number,
                        "error": self.refusal(
                            Exception(error) if not isinstance(error, Exception) else error
                        ).as_json(),
                    }
                )
            else:
                outcomes.append({"id": number, "offset": future.result().offset})
        self.sent[producer] = pending
        return {"outcomes": outcomes, "pending": len(pending)}

    async def init_transactions(self, producer: str, timeout_ms: int) -> None:
        await asyncio.wait_for(self.producers[producer].start(), timeout_ms / 1000)

    async def begin(self, producer: str) -> None:
        await self.producers[producer].begin_transaction()

    async def send_offsets(self, producer: str, consumer: str, timeout_ms: int) -> None:
        source = self.consumers[consumer]
        positions = {each: await source.position(each) for each in source.assignment()}
        sending = self.producers[producer].send_offsets_to_transaction(positions, source._group_id)
        await asyncio.wait_for(sending, timeout_ms / 1000)

    async def commit(self, producer: str, timeout_ms: int) -> None:
        await asyncio.wait_for(self.producers[producer].commit_transaction(), timeout_ms / 1000)

    async def abort(self, producer: str, timeout_ms: int) -> None:
        await asyncio.wait_for(self.producers[producer].abort_transaction(), timeout_ms / 1000)

    async def consumer(self, name: str, bootstrap_servers: str, client_id: str, **options: Any) -> None:
        client = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            group_id=options["group"],
            isolation_level=options["isolation"],
            auto_offset_reset=options["offset_reset"],
            enable_auto_commit=options["auto_commit"],
            group_instance_id=options["instance_id"],
            session_timeout_ms=options["session_timeout_ms"],
            heartbeat_interval_ms=options["heartbeat_interval_ms"],
            request_timeout_ms=options["request_timeout_ms"],
            fetch_max_wait_ms=100,
            retry_backoff_ms=50,
            metadata_max_age_ms=5_000,
            **security(options),
        )
        self.consumers[name] = client
        await client.start()

    async def assign(self, consumer: str, partitions: Sequence[Mapping[str, Any]]) -> None:
        client = self.consumers[consumer]
        places = {structs.TopicPartition(p["topic"], p["partition"]): p["offset"] for p in partitions}
        client.assign(list(places))
        for place, offset in places.items():
            client.seek(place, offset)

    async def subscribe(self, consumer: str, topics: Sequence[str]) -> None:
        self.consumers[consumer].subscribe(list(topics))

    async def poll(self, consumer: str, timeout_ms: int, max_records: int | None = None) -> Mapping[str, Any]:
        try:
            polled = await self.consumers[consumer].getmany(timeout_ms=timeout_ms, max_records=max_records)
        except errors.KafkaError as error:
            return {"records": [], "errors": [self.refusal(error).as_json()]}
        return polled_json(polled)

    async def assignment(self, consumer: str) -> Mapping[str, Any]:
        return partitions_json(self.consumers[consumer].assignment())

    async def seek(self, consumer: str, topic: str, partition: int, offset: int) -> None:
        self.consumers[consumer].seek(structs.TopicPartition(topic, partition), offset)

    async def commit_offsets(
        self, consumer: str, timeout_ms: int, offsets: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        chosen = None
        if offsets is not None:
            chosen = {structs.TopicPartition(each["topic"], each["partition"]): each["offset"] for each in offsets}
        await asyncio.wait_for(self.consumers[consumer].commit(chosen), timeout_ms / 1000)

    async def close(self, name: str, timeout_ms: int) -> None:
        client = self.consumers.pop(name, None) or self.producers.pop(name)
        await asyncio.wait_for(client.stop(), timeout_ms / 1000)

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def answer_later(self, name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to one command, without its id."""
        answer = self.answer(name, fields)
        coroutine = answer.get("result")
        if not asyncio.iscoroutine(coroutine):
            return answer
        try:
            return {"result": await coroutine or {}}
        except Exception as error:  # noqa: BLE001 - each exception of the library is its answer
            return {"error": self.refusal(error).as_json()}

    async def serve(self) -> None:
        """Answer commands until `quit` or the end of stdin; the library works between them."""
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(line)
            number, name = command.pop("id"), command.pop("command")
            answer = await self.answer_later(name, command)
            print(json.dumps({"id": number, **answer}), flush=True)  # noqa: T201 - answers go to stdout
            if name == "quit":
                return


if __name__ == "__main__":
    asyncio.run(Driver().serve())
