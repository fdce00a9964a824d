"""A proxy that cannot start: one sentence with the reason and the remedy."""

import socket

import pytest

from tests.serving import Server
from understudy.errors import StartError
from understudy.launcher import ServerProcess, command_line


@pytest.mark.parametrize("option", ["port", "control-port"])
def test_a_port_that_is_taken(broker: Server, option: str) -> None:
    """The sentence names the port, and the option that gives another one; it is `understudy serve`'s."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = {"port": 0, "control_port": 0, option.replace("-", "_"): port}
        with pytest.raises(StartError, match=f"port {port} is taken; choose another one with --{option}, or 0 for"):
            ServerProcess(command_line(upstream=broker.addresses[0], **options), "proxy")
