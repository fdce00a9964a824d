"""Transport of verbs to the control plane: one connection per call, so that threads and tasks may share a client.

Uses http.client of the standard library, because it imports in 25 ms where httpx takes 165, and a call on loopback
costs less than a millisecond either way.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from control_api.spelling import host_and_port
from control_api.verb import Verb
from control_api.verbs import BY_NAME
from understudy.errors import ControlError, Unreachable

PATIENCE_MS = 30_000  # longer than any command but those that wait, whose own timeout is added


@dataclass(frozen=True, slots=True)
class Call:
    """One request, ready to be sent: the common part of both transports."""

    verb: Verb
    target: str
    body: bytes | None
    headers: Mapping[str, str]
    patience_s: float

    def answer(self, status: int, content: bytes) -> Any:
        """Return the decoded response; raise ControlError for a problem document."""
        __tracebackhide__ = True  # pytest shows the caller's line instead
        return decoded(self.verb, status, content)


def decoded(verb: Verb, status: int, content: bytes) -> Any:
    """Return the decoded response to a verb; raise ControlError for a problem document."""
    __tracebackhide__ = True
    if status >= 300:  # a control plane never redirects: this is something else, such as a gateway
        raise refusal(status, content)
    if verb.is_file:
        return content
    if not verb.answer:
        return content.decode(errors="replace")
    try:
        return json.loads(content) if content else {}
    except ValueError:
        # The begin of a page that another server sent, some lines, here and below.
        shown = content.decode(errors="replace")[:500]
        raise ControlError(status, "not JSON", f"this is not a response of a control plane: {shown}") from None


def refusal(status: int, content: bytes) -> ControlError:
    """Return the problem document (RFC 9457) as an exception; any other body is quoted unchanged."""
    try:
        problem = json.loads(content)
        title, detail = str(problem["title"]), str(problem.get("detail", ""))
    except (ValueError, KeyError, TypeError):
        return ControlError(status, f"HTTP {status}", content.decode(errors="replace")[:500])
    return ControlError(status, title, detail, problem.get("field"))


@dataclass(frozen=True, slots=True)
class Address:
    """URL of a control plane (empty: none), and the token that it requires."""

    url: str
    token: str | None = None

    @property
    def host(self) -> str:
        """Return the host of the URL."""
        return urlsplit(self.url).hostname or "127.0.0.1"

    @property
    def has_tls(self) -> bool:
        """Return whether the URL is that of a gateway with TLS; the control plane itself has none."""
        return urlsplit(self.url).scheme == "https"

    @property
    def port(self) -> int:
        """Return the port of the URL."""
        return urlsplit(self.url).port or (443 if self.has_tls else 80)

    @property
    def cluster_id(self) -> str:
        """Return the id of the cluster in the URL; empty for the cluster of the command line."""
        return unquote(self.url.rstrip("/").rpartition("/clusters/")[2]) if "/clusters/" in self.url else ""

    def of_cluster(self, id: str) -> "Address":
        """Return the address of another cluster of the same process."""
        return Address(f"{self.url.partition('/clusters/')[0].rstrip('/')}/clusters/{quote(id, safe='')}", self.token)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Call:
        """Return the request for a verb of the table; the path's names, query and body are taken from the arguments."""
        if not self.url:
            raise Unreachable(f"this cluster was started without a control plane, which {name!r} needs")
        verb = BY_NAME[name]
        document = verb.document(arguments)
        headers = {"Host": self._place(), "Accept": "*/*", "Connection": "close"}
        body = None if document is None else json.dumps(document).encode()
        if body is not None:
            headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        patience_ms = PATIENCE_MS + int(arguments.get("timeout_ms") or 0)
        target = urlsplit(self.url).path.rstrip("/") + verb.target(arguments)
        return Call(verb, target, body, headers, patience_ms / 1000)

    def _place(self) -> str:
        """Return HOST:PORT. Raises Unreachable: the URL has no server, or the token cannot be sent."""
        token = self.token or ""
        if not token.isascii() or not token.isprintable():
            raise Unreachable("the token has a character that cannot be sent; use letters and digits")
        try:
            if urlsplit(self.url).scheme not in {"http", "https"}:
                raise ValueError("it needs http or https")
            return host_and_port(self.host, self.port)
        except ValueError as error:
            such = "such as http://127.0.0.1:9099"
            raise Unreachable(f"{self.url} is not the URL of a control plane, {such}: {error}") from None

    def unreachable(self, error: Exception, patience_s: float) -> Unreachable:
        """Return the error for a failed connection, or for a response that did not arrive in time."""
        if isinstance(error, TimeoutError):
            return Unreachable(
                f"no answer from {self.url} within {patience_s:g} s; the server may still be processing it"
            )
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Unreachable(f"no control plane answers at {self.url}: {reason}")


class Transport:
    """Blocking transport."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Send the verb and return the decoded response; raise ControlError or Unreachable."""
        __tracebackhide__ = True
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        call = self.address.call(name, arguments)
        kind = HTTPSConnection if self.address.has_tls else HTTPConnection
        connection = kind(self.address.host, self.address.port, timeout=call.patience_s)
        try:
            connection.request(call.verb.method, call.target, call.body, dict(call.headers))
            response = connection.getresponse()
            status, content = response.status, response.read()
        except (OSError, HTTPException, UnicodeError) as error:
            raise self.address.unreachable(error, call.patience_s) from error
        finally:
            connection.close()
        return call.answer(status, content)


class AsyncTransport:
    """Asynchronous transport, on asyncio or trio."""

    def __init__(self, address: Address) -> None:
        self.address = address

    async def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Send the verb and return the decoded response; raise ControlError or Unreachable."""
        __tracebackhide__ = True
        import anyio
        import h11

        call = self.address.call(name, arguments)
        wire = h11.Connection(h11.CLIENT)
        request = h11.Request(method=call.verb.method, target=call.target, headers=list(call.headers.items()))
        out = wire.send(request) or b""
        if call.body is not None:
            out += wire.send(h11.Data(data=call.body)) or b""
        out += wire.send(h11.EndOfMessage()) or b""
        try:
            with anyio.fail_after(call.patience_s):
                async with await self.connected() as stream:
                    await stream.send(out)
                    status, content = await self.receive(stream, wire)
        except (OSError, UnicodeError, TimeoutError, anyio.BrokenResourceError, h11.ProtocolError) as error:
            raise self.address.unreachable(error, call.patience_s) from error
        return call.answer(status, content)

    async def connected(self) -> Any:
        """Open a new connection."""
        import anyio

        host, port = self.address.host, self.address.port
        if not self.address.has_tls:
            return await anyio.connect_tcp(host, port)
        # A peer that has sent its whole response need not close the TLS session.
        return await anyio.connect_tcp(host, port, tls=True, tls_standard_compatible=False)

    async def receive(self, stream: Any, wire: Any) -> tuple[int, bytes]:
        """Return status and body of the one response."""
        import anyio
        import h11

        status, parts = 0, []
        while True:
            event = wire.next_event()
            if event is h11.NEED_DATA:
                try:
                    wire.receive_data(await stream.receive())
                except anyio.EndOfStream:
                    wire.receive_data(b"")
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return status, b"".join(parts)
            else:
                raise OSError("the connection was closed before the response")
