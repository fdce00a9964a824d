"""Spans of OpenTelemetry: a collector of the test's own gets them from a server, with real clients."""

import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from broker.request.connection import Connection
from broker.request.context import Exchange
from broker.steering.journal.ring import Journal
from broker.steering.journal.traces import Traces, traces_url
from protocol.apis import ApiKey
from tests.serving import start, until
from understudy.launcher import ServerProcess

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OTHER = "c8ad6b7169203331"
CONTEXT: list[tuple[str, str | bytes | None]] = [("traceparent", f"00-{TRACE}-{PARENT}-01".encode())]


class Collector:
    """Takes spans over OTLP."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        mine = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/v1/traces":
                    mine.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print no line per request."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def spans(self, name: str) -> list[Any]:
        """The spans of this name so far."""
        scopes = (scope for request in self.requests for each in request.resource_spans for scope in each.scope_spans)
        return [span for scope in scopes for span in scope.spans if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    """One that listens."""
    new_collector = Collector()
    thread = threading.Thread(target=new_collector.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield new_collector
    new_collector.server.shutdown()
    thread.join()
    new_collector.server.server_close()


def stopped(server: ServerProcess, collector: Collector, name: str) -> list[Any]:
    """Spans of this name, after the server has sent what was left."""
    server.stop()
    return collector.spans(name)


def attributes(span: Any) -> dict[str, Any]:
    """The attributes of a span."""
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def produce(server: ServerProcess, *headers: list[tuple[str, str | bytes | None]], codec: str = "none") -> None:
    """One request with a record for each of these."""
    producer = Producer({
        "bootstrap.servers": server.ready.bootstrap_servers[0], "client.id": "app", "linger.ms": 200,
        "compression.type": codec,
    })  # fmt: skip
    for each in headers:
        producer.produce("orders", b"value " * 20, headers=each)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_produce_request_is_a_child_of_the_producers_span(collector: Collector, codec: str) -> None:
    """With its topic, its client, its times; the span is sent before the server has ended."""
    server = start(topics=["orders:1"], otlp_endpoint=collector.url)
    produce(server, CONTEXT, CONTEXT, codec=codec)
    (span,) = stopped(server, collector, "Produce orders")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert 0 < span.end_time_unix_nano - span.start_time_unix_nano < 10 * 10**9
    span_attributes = attributes(span)
    assert span_attributes["messaging.system"] == "kafka"
    assert span_attributes["messaging.destination.name"] == "orders"
    assert span_attributes["messaging.client.id"] == "app"
    assert span_attributes["kafka.broker.id"] == 1
    assert span_attributes["user_agent.original"].startswith("confluent-kafka-python")
    assert not span.status.code


def test_records_of_several_traces_are_links(collector: Collector) -> None:
    """And records without a context have none; a header that is no context is left out."""
    server = start(topics=["orders:1"], otlp_endpoint=collector.url)
    other: list[tuple[str, str | bytes | None]] = [("traceparent", f"00-{TRACE}-{OTHER}-01".encode())]
    produce(server, CONTEXT, other, [("traceparent", b"\xff no context")])
    (span,) = stopped(server, collector, "Produce orders")
    assert span.parent_span_id == b""
    assert [link.span_id.hex() for link in span.links] == [PARENT, OTHER]


def test_errors_and_faults_are_in_the_span(collector: Collector) -> None:
    """The first error code of the answer, and the fault that was met; names of topics that requests have by id."""
    server = start(topics=["orders:1"], otlp_endpoint=collector.url)
    kafka = server.ready.bootstrap_servers[0]
    produce(server, CONTEXT)
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    until(lambda: (m := consumer.poll(0.2)) is not None and m.error() is None, "a record")
    consumer.close()
    assert stopped(server, collector, "Fetch orders")
    (joined, *_) = collector.spans("JoinGroup")
    assert attributes(joined)["error.type"] == "MEMBER_ID_REQUIRED"
    assert attributes(joined)["messaging.consumer.group.name"] == "g"
    assert joined.status.code == 2


def test_a_collector_that_is_not_there_costs_no_request() -> None:
    """Requests are answered; the server ends in good order."""
    server = start(topics=["orders:1"], otlp_endpoint="http://127.0.0.1:1")
    produce(server, CONTEXT)
    server.stop()
    assert server.process.returncode == 0


def test_names_that_are_no_utf_8_are_sent(collector: Collector) -> None:
    """As Java reads them: one such client id must not cost the spans that are sent with it."""
    server = start(topics=["orders:1"], otlp_endpoint=collector.url)
    produce(server, CONTEXT)
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 7, 5) + b"app\xed\xa0"
    host, port = server.ready.bootstrap_servers[0].rsplit(":", 1)
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(struct.pack(">i", len(header)) + header)
        assert raw.recv(4)
    assert stopped(server, collector, "Produce orders")
    ids = [attributes(span).get("messaging.client.id") for span in collector.spans("ApiVersions")]
    assert "app\ufffd\ufffd" in ids or "app\ufffd" in ids


class Served:
    """A cluster of this id; without one, asking for it fails: a mistake of ours."""

    def __init__(self, cluster_id: str | None) -> None:
        self._cluster_id, self.image, self.journal = cluster_id, None, Journal(10, 10_000)

    @property
    def cluster_id(self) -> str:
        """Its id."""
        if self._cluster_id is None:
            raise RuntimeError("no id")
        return self._cluster_id


@pytest.mark.parametrize(("cluster_id", "spans"), [("c", 1), (None, 0)])
def test_a_span_that_cannot_be_made_costs_no_request(cluster_id: str | None, spans: int) -> None:
    """The journal has the request all the same."""
    cluster, exporter = Served(cluster_id), InMemorySpanExporter()
    traces = Traces(cluster, exporter)
    cluster.journal.tracer = traces
    frame = bytearray(struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 7, -1))
    exchange = Exchange(frame, Connection("c", "PLAINTEXT", "127.0.0.1", 1), 1, 1000)
    cluster.journal.arrive(exchange)
    cluster.journal.finish(exchange)
    traces.close()
    assert len(exporter.get_finished_spans()) == spans
    assert sum(len(entries) for entries, *_ in cluster.journal.parts()) == 1


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("https://h/", "https://h/v1/traces"),
        ("http://h:4318/own/path", "http://h:4318/own/path"),
    ],
)
def test_spans_go_to_the_collectors_path(endpoint: str, url: str) -> None:
    """Unless the URL has a path of its own."""
    assert traces_url(endpoint) == url


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "grpc://h:4317", "http://"])
def test_what_is_no_url_is_refused(endpoint: str) -> None:
    """What is no URL of a collector is refused with an example of one."""
    with pytest.raises(ValueError, match=r"such as http://127\.0\.0\.1:4318"):
        traces_url(endpoint)
