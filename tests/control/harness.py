"""A server's control plane at its three ways in: HTTP, Python and the shell.

What comes through the first one is held against the OpenAPI document.
"""

import contextlib
import io
import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from tests.control import schemas
from tests.serving import Server
from tests.wire import PATIENCE_S
from understudy.cli import main
from understudy.client import Cluster, connect


class ControlPlane:
    """One server, and every way to control it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = str(server.process.ready.control_url)
        self.kafka: Cluster = connect(self.url)

    @property
    def bootstrap(self) -> str:
        """For clients, which find the coordinators' topics made."""
        self.server.make_coordinators()
        return ",".join(self.server.addresses)

    def http(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A call that is to succeed."""
        answer = self.server.control(method, path, body)
        schemas.check(method, path, answer)
        return answer

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Status and problem of a call that is to fail."""
        status, content = self.raw(method, path, body)
        problem = json.loads(content)
        assert status >= 400, problem
        schemas.check_problem(problem)
        assert problem["status"] == status
        assert "Traceback" not in problem["detail"]
        return status, problem

    def raw(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Status and content of any call."""
        url = urlsplit(self.url)
        connection = HTTPConnection(str(url.hostname), url.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def ctl(self, *arguments: str) -> Any:
        """What ``understudy ctl ... --json`` prints."""
        return json.loads(self.ctl_text(*arguments, "--json"))

    def ctl_text(self, *arguments: str) -> str:
        """What ``understudy ctl ...`` prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = main(["ctl", *arguments, "--control", self.url])
        assert code == 0, out.getvalue()
        return out.getvalue()
