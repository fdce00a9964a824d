"""Rows with many: connections that each send one record at a time, and a topic of a thousand partitions."""

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import frames, payloads
from benchmarks.latency import percentile
from benchmarks.librdkafka import Producer
from benchmarks.row import STORING, Figure, Goal, Scale, ServerRow, Values
from benchmarks.targets import Server

_CONNECTIONS = 200
_PARTITIONS = 1000
_TIMEOUT_S = 60
_PRODUCE_OF_LIMIT = 7
"""The newest version of Produce that the limit reads; all others get that of librdkafka."""
_ANY_PARTITION = -1


def _turns(server: Server, frame: bytes, count: int) -> Iterator[float]:
    """Send requests, each connection the next one when it has its response; yield the seconds of each."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        begun: dict[int, float] = {}
        left = count
        for _ in range(_CONNECTIONS):
            each = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), _TIMEOUT_S))
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(each, selectors.EVENT_READ, each)
        for key in list(selector.get_map().values()):
            begun[key.fd] = time.perf_counter()
            key.data.sendall(frame)
            left -= 1
        waiting = count
        while waiting:
            ready = selector.select(_TIMEOUT_S)
            if not ready:
                raise AssertionError(f"{waiting} of {count} requests were not answered in {_TIMEOUT_S} s")
            for key, _ in ready:
                size = int.from_bytes(key.data.recv(4, socket.MSG_WAITALL), "big")
                if len(key.data.recv(size, socket.MSG_WAITALL)) != size or not size:
                    raise AssertionError("the server closed a connection")
                now = time.perf_counter()
                yield now - begun[key.fd]
                waiting -= 1
                if left:
                    begun[key.fd] = now
                    key.data.sendall(frame)
                    left -= 1


def _many_clients(server: Server, topic: str, scale: Scale, _first: bool) -> Values:
    """Produce on 200 connections, each with one record in flight."""
    count = scale.of(20_000, 1000)
    server.create_topic(topic)
    version = {} if server.stores else {"version": _PRODUCE_OF_LIMIT}
    frame = frames.produce(topic, records=1, size=100, **version)
    cpu_s, begun = server.cpu_s(), time.perf_counter()
    samples = list(_turns(server, frame, count))
    seconds, cpu_s = time.perf_counter() - begun, server.cpu_s() - cpu_s
    if server.stores and (stored := server.records(topic)) != count:
        raise AssertionError(f"{count} records acknowledged, {stored} in the log")
    server.delete_topic(topic)
    return {
        "many_clients": count / seconds,
        "many_clients_p99": percentile(samples, 99),
        "many_clients_cpu": cpu_s / count * 1e6,
    }


def _many_partitions(server: Server, topic: str, scale: Scale, _first: bool) -> Values:
    """Produce to a thousand partitions, each record to another one."""
    count = scale.of(500_000, 10_000)
    server.create_topic(topic, _PARTITIONS)
    settings = {"linger_ms": 5, "partitioner": "random", "sticky_partitioning_linger_ms": 0}
    with Producer(server.bootstrap, topic, payloads.lines(100), **settings) as producer:
        producer.partition = _ANY_PARTITION
        producer.send(1000, _TIMEOUT_S)
        cpu_s = server.cpu_s()
        seconds = producer.send(count, _TIMEOUT_S)
        cpu_s = server.cpu_s() - cpu_s
    if (stored := server.records(topic, _PARTITIONS)) != count + 1000:
        raise AssertionError(f"{count + 1000} records acknowledged, {stored} in the log")
    server.delete_topic(topic)
    return {"many_partitions": count / seconds, "many_partitions_cpu": cpu_s / count * 1e6}


ROWS = (
    ServerRow(
        "many_clients",
        (
            Figure("many_clients", "200 connections, one record each in flight", "/s", goal=Goal(of_kfake=0.8)),
            Figure("many_clients_p99", "... each waits, p99", "us", "lower", Goal(of_kafka=1.0)),
            Figure("many_clients_cpu", "200 connections: the server's CPU", "us a record", "lower"),
        ),
        _many_clients,
        targets=(*STORING, "limit"),
    ),
    ServerRow(
        "many_partitions",
        (
            Figure("many_partitions", "produce 100 B to 1,000 partitions", "msg/s", goal=Goal(of_kafka=1.0)),
            Figure(
                "many_partitions_cpu", "produce 100 B to 1,000 partitions: the server's CPU", "us a record", "lower"
            ),
        ),
        _many_partitions,
        targets=STORING,
    ),
)
