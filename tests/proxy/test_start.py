"""A proxy that cannot start prints one sentence, with the reason and the remedy."""

import socket
from pathlib import Path

import pytest

from broker.options import OptionError
from proxy.options import parse
from tests.serving import Server
from understudy.cli import main
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


@pytest.mark.parametrize("option", [{"port": ["65535"]}, {"advertise": ["proxy:65535"]}])
def test_addresses_for_which_no_port_is_left(option: dict[str, list[str]]) -> None:
    """Each address of --upstream has the port that follows the one before."""
    with pytest.raises(OptionError, match="broker 2 would need port 65536"):
        parse({"upstream": ["kafka-1:9092,kafka-2:9092"], **option})


def test_a_properties_file_is_not_read_in_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A broker's properties file is refused by the proxy instead of ignored."""
    (file := tmp_path / "server.properties").write_text("node.id=1\n")
    with pytest.raises(SystemExit) as left:
        main(["proxy", "--upstream", "127.0.0.1:1", "--config", str(file)])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("understudy proxy: --config takes a *.toml file here")
