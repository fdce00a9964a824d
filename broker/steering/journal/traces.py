"""OpenTelemetry spans of requests, sent over OTLP: ``--otlp-endpoint URL``.

A span has kind SERVER: it begins when the request arrives and ends with the response. Instrumented producers write the
context of their own span into a header of each record (W3C Trace Context); the span of a Produce request is a child of
it if all records have the same context, and has links to each context if they differ.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from broker.logs import Logger
from broker.request.context import Exchange
from broker.steering.journal.entries import Decoded, decode, software, title
from broker.steering.journal.mentioned import columns
from broker.steering.journal.ring import Entry, Journal, Raw
from broker.time.clock import since_1970_ns, stopwatch_ns
from protocol.apis import ApiKey
from protocol.paths import errors
from protocol.records.batch import batches
from protocol.records.errors import RecordsError
from protocol.records.records import Record, read_records
from protocol.types import uuid_from_text

try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise ImportError("--otlp-endpoint needs OpenTelemetry: pip install 'understudy-kafka[otel]'") from error

_log = Logger(__name__)
_PATH = "/v1/traces"
_MOST_RECORDS = 100
"""The maximum number of records per request whose headers are read; ``_MOST_BYTES`` bounds decompression.

Ours, those of a request mostly have the same context.
"""
_MOST_BYTES = 1 << 20  # of spans that wait for a collector; older ones are dropped; ours, thousands of spans
_PATIENCE_S = 1.5  # with the collector, at the end of the process; ours, as a stop has to end soon
_CONTEXT = TraceContextTextMapPropagator()
_CONTEXT_HEADERS = frozenset(_CONTEXT.fields)


class Named(Protocol):
    """The cluster whose requests become spans."""

    @property
    def cluster_id(self) -> str:
        """Return the cluster id; empty while it is unknown."""
        ...

    @property
    def image(self) -> Any:
        """Return the metadata image, for the names of topics that requests name by id (KIP-516)."""
        ...

    @property
    def journal(self) -> Journal:
        """Return the journal, which has the names of deleted topics."""
        ...


class Traces:
    """Makes spans and sends them from a separate thread. The SDK drops and logs spans that cannot be sent."""

    def __init__(self, cluster: Named, exporter: SpanExporter) -> None:
        self._cluster, self._since_1970_ns = cluster, since_1970_ns()
        resource = Resource.create({"service.name": "understudy"})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("understudy")

    @classmethod
    def to(cls, endpoint: str, cluster: Named) -> "Traces":
        """Make traces for a collector; headers and timeout come from ``OTEL_EXPORTER_OTLP_...`` in the environment."""
        return cls(cluster, OTLPSpanExporter(endpoint=traces_url(endpoint)))

    def record(self, entry: Raw, exchange: Exchange) -> None:
        """Make the span of a finished request. Never raises: response and journal matter more."""
        settled = Entry(*entry)
        try:
            self._make_span(settled, exchange)
        except Exception:  # noqa: BLE001 - no error of OpenTelemetry may reach the request
            _log.exception("a span could not be made", journal_id=settled.id)

    def _make_span(self, settled: Entry, exchange: Exchange) -> None:
        decoded = decode(settled)
        api = "unreadable" if decoded.header is None else title(decoded.header.api_key)
        named = columns(decoded, self._name_of)
        contexts = contexts_of(exchange)
        parent = trace.set_span_in_context(trace.NonRecordingSpan(contexts[0])) if len(contexts) == 1 else None
        topics = named["topics"]
        span = self._tracer.start_span(
            f"{api} {topics[0]}" if len(topics) == 1 else api,
            context=parent,
            kind=trace.SpanKind.SERVER,
            links=[trace.Link(each) for each in contexts] if len(contexts) > 1 else (),
            start_time=exchange.began_ns + self._since_1970_ns,
            attributes={**self._attributes(api, settled, decoded, exchange), **_subjects(named)},
        )
        failed = next(errors(decoded.response), None)
        problem = failed.name if failed is not None else None if settled.outcome == "answered" else settled.outcome
        if problem is not None:
            span.set_attribute("error.type", problem)
            span.set_status(trace.Status(trace.StatusCode.ERROR, problem))
        span.end(stopwatch_ns() + self._since_1970_ns)

    def close(self) -> None:
        """Send the remaining spans, within 1.5 s. Blocks: call it from a thread."""
        ending = threading.Thread(
            target=self._provider.shutdown, daemon=True
        )  # an unresponsive collector would block it
        ending.start()
        ending.join(_PATIENCE_S)
        if ending.is_alive():
            _log.warning("spans that the collector has not accepted are dropped")

    def _name_of(self, text: str) -> str | None:
        topic_id = uuid_from_text(text) if text else None
        if topic_id is None:
            return None
        known = self._cluster.image.topics_by_id.get(topic_id)
        return self._cluster.journal.topic_names.get(topic_id) if known is None else str(known.name)

    def _attributes(self, api: str, entry: Entry, decoded: Decoded, exchange: Exchange) -> dict[str, Any]:
        connection, header = exchange.connection, decoded.header
        known = {
            "messaging.system": "kafka",
            "messaging.operation.name": api,
            "messaging.client.id": None if header is None else header.client_id,
            "messaging.message.body.size": entry.frame_bytes,
            "network.peer.address": connection.client_host,
            "network.peer.port": connection.client_port,
            "user_agent.original": software(connection),
            "kafka.cluster.id": self._cluster.cluster_id,
            "kafka.broker.id": entry.broker,
            "kafka.api.version": None if header is None else header.api_version,
            "kafka.correlation_id": None if header is None else header.correlation_id,
            "understudy.journal.id": entry.id,
            "understudy.fault": entry.fault,
        }
        return {name: value for name, value in known.items() if value is not None}


def traces_url(endpoint: str) -> str:
    """Return the URL for spans: the endpoint with ``/v1/traces``, unless it has a path. Raises ValueError."""
    try:
        parts = urlsplit(endpoint)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise ValueError(f"--otlp-endpoint needs http://HOST:PORT, such as http://127.0.0.1:4318, not {endpoint!r}")
    return urlunsplit(parts._replace(path=_PATH)) if parts.path in {"", "/"} else endpoint


def contexts_of(exchange: Exchange) -> list[trace.SpanContext]:
    """Return the distinct span contexts in the headers of a Produce request's first records."""
    frame, request = exchange.frame, exchange.request
    if len(frame) < 2 or frame[0] or frame[1] != ApiKey.PRODUCE or request is None:
        return []
    contexts: dict[tuple[int, int], trace.SpanContext] = {}
    with suppress(RecordsError):
        for record in islice(_records(request), _MOST_RECORDS):
            carried = {key: (value or b"").decode("utf-8", "replace") for key, value in record.headers
                       if key in _CONTEXT_HEADERS}  # fmt: skip
            context = trace.get_current_span(_CONTEXT.extract(carried)).get_span_context() if carried else None
            if context is not None and context.is_valid:
                contexts[context.trace_id, context.span_id] = context
    return list(contexts.values())


def _records(request: Any) -> Iterator[Record]:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            for batch in batches(partition.records or b""):
                yield from read_records(batch, _MOST_BYTES)


def _subjects(named: Mapping[str, list[str]]) -> dict[str, str]:
    """Return topic, group and transactional id as attributes, each if the request names exactly one."""
    names = {
        "messaging.destination.name": "topics",
        "messaging.consumer.group.name": "groups",
        "kafka.transactional_id": "transactional_ids",
    }
    return {name: named[kind][0] for name, kind in names.items() if len(named[kind]) == 1}
