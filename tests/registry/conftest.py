"""Fixtures of the registry's tests: a server with a registry, as just started, and a client that shows every answer."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest

from tests.conftest import BrokerWith
from tests.serving import Server
from tests.wire import PATIENCE_S

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class Rest:
    """The registry of a server, asked over HTTP."""

    def __init__(self, server: Server) -> None:
        self.server = server
        assert server.process.ready.schema_registry_url is not None
        self.url = server.process.ready.schema_registry_url

    def raw(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str, bytes]:
        """Status, content type and body of an answer."""
        place = urlsplit(self.url)
        connection = HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, {"Content-Type": CONTENT_TYPE, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers["content-type"], answer.read()
        finally:
            connection.close()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and document of an answer."""
        status, _, content = self.raw(method, path, None if body is None else json.dumps(body).encode())
        return status, json.loads(content)

    def get(self, path: str) -> Any:
        """The document of an answer; fails the test on any status but 200."""
        status, document = self.ask("GET", path)
        assert status == 200, document
        return document

    def register(self, subject: str, schema: object, kind: str | None = None, **more: Any) -> int:
        """Register a schema, given as a document or as a text; its id."""
        status, document = self.ask("POST", f"/subjects/{subject}/versions", schema_body(schema, kind, **more))
        assert status == 200, document
        return int(document["id"])

    def code(self, method: str, path: str, body: object = None) -> int:
        """The error code of an answer, whose status has to be its first three digits."""
        status, problem = self.ask(method, path, body)
        assert str(problem["error_code"])[:3] == str(status)
        assert problem["message"]
        return int(problem["error_code"])


def schema_body(schema: object, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """The body of a request with a schema."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return {"schema": text, **({} if kind is None else {"schemaType": kind}), **more}


class RegistryWith(Protocol):
    """``registry_with(brokers=3, ...)``: the options of a server."""

    def __call__(self, **options: Any) -> Rest:
        """The registry of a server with these options, as just started."""
        ...


@pytest.fixture
def registry_with(broker_with: BrokerWith) -> RegistryWith:
    """A factory of registries."""

    def rest(**options: Any) -> Rest:
        settings = {"group.initial.rebalance.delay.ms": 0, **options.pop("settings", {})}
        return Rest(broker_with(schema_registry=0, settings=settings, **options))

    return rest


@pytest.fixture
def registry(registry_with: RegistryWith) -> Rest:
    """The registry beside one broker."""
    return registry_with()
