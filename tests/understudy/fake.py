"""A fake control plane with the answers of a test, which keeps the requests; and a fake server process."""

import json
import ssl
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from understudy.launcher import Ready


class Server(ThreadingHTTPServer):
    """Accepts many callers at once: with five, the default, the sixth waits a second."""

    request_queue_size = 100


class FakeControl:
    """Answers by "METHOD /path" (the query left out); anything else gets an empty object. With `tls`, over TLS."""

    def __init__(self, answers: Mapping[str, Any] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Any] = {
            "GET /v1/faults": {"faults": []},
            "GET /v1/journal": {"entries": []},
            "GET /v1/report": {"text": "last requests:\n  none"},
            "POST /v1/reset": {"status": "ok", "bootstrap_servers": ["127.0.0.1:2"]},
            **(answers or {}),
        }
        self.seen: list[tuple[str, str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.server = Server(("127.0.0.1", 0), self.handler())
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.server.server_port}"

    def handler(self) -> type[BaseHTTPRequestHandler]:
        """A handler class that knows this control plane."""
        control = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                control.seen.append((self.command, self.path, json.loads(body) if body else None))
                control.headers.append(dict(self.headers.items()))
                status, content = control.reply(f"{self.command} {self.path.partition('?')[0]}")
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - http.server's names

            def log_message(self, format: str, *arguments: object) -> None:
                """Log nothing."""

        return Handler

    def reply(self, question: str) -> tuple[int, bytes]:
        """Status and body; an answer may be a (status, document) pair, bytes, or a document."""
        answer = self.answers.get(question, {})
        status, answer = answer if isinstance(answer, tuple) else (200, answer)
        return status, answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class FakeProcess:
    """Replaces a ServerProcess: started with options, alive until it is stopped."""

    started: "list[FakeProcess]" = []  # noqa: RUF012 - what a test looks at
    answers: Mapping[str, Any] = {}

    def __init__(self, options: Sequence[str]) -> None:
        self.options = list(options)
        self.control = FakeControl(type(self).answers)
        self.alive = True
        self.ready = Ready(("127.0.0.1:1", "127.0.0.1:2"), self.control.url, "cluster", 1)
        type(self).started.append(self)

    def ending(self, patience_s: float = 0.0) -> str:  # noqa: ARG002
        """Nothing: it never ends by itself."""
        return ""

    def log(self, lines: int = 30) -> str:
        """A log of one line."""
        return f"the last of {lines} lines"

    def stop(self) -> None:
        """End it."""
        if self.alive:
            self.alive = False
            self.control.close()
