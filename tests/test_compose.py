"""compose.yaml without an engine: its variables start a server, its app talks to it through the network's listener."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.ports import free_ports
from tests.understudy.serving import serve

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, str]]:
    """A server with the variables of compose.yaml, on free ports of this machine instead of 9092, 29092 and 9099."""
    names = ("29092", "9092", "9099")
    mapped = dict(zip(names, map(str, free_ports(len(names))), strict=True))
    text = (ROOT / "examples" / "compose" / "compose.yaml").read_text(encoding="utf-8").partition("  app:")[0]
    values = dict(re.findall(r"^ +(UNDERSTUDY_\w+): (?!\|)(.+)$", text, re.MULTILINE))
    topics = re.search(r"UNDERSTUDY_TOPIC: \|\n((?: {8}.*\n)+)", text)
    assert topics is not None
    values["UNDERSTUDY_TOPIC"] = topics[1]
    for name, value in values.items():
        moved = re.sub(r"29092|9092|9099", lambda port: mapped[port[0]], value)
        values[name] = moved.replace("=kafka:", "=127.0.0.1:")  # no network here gives the service its name
    env = {"UNDERSTUDY_HOST": "127.0.0.1", "UNDERSTUDY_PORT": mapped["9092"], "UNDERSTUDY_CONTROL_PORT": mapped["9099"]}
    env["UNDERSTUDY_SET_GROUP_INITIAL_REBALANCE_DELAY_MS"] = "0"
    with serve(env={**env, **values}):
        yield mapped


def test_each_listener_returns_its_own_address(ports: dict[str, str]) -> None:
    """Programs on the host get localhost, containers of the network the service's name."""
    for port, answer in (("9092", f"localhost:{ports['9092']}"), ("29092", f"127.0.0.1:{ports['29092']}")):
        topics = AdminClient({"bootstrap.servers": f"127.0.0.1:{ports[port]}"}).list_topics(timeout=60)
        assert [f"{broker.host}:{broker.port}" for broker in topics.brokers.values()] == [answer]
        assert {"orders", "payments"} <= set(topics.topics)


def test_the_app_does_its_work_through_the_network_listener(ports: dict[str, str]) -> None:
    """As its container would, by the variable that compose.yaml gives it."""
    env = os.environ | {"BOOTSTRAP_SERVERS": f"127.0.0.1:{ports['29092']}"}
    app = ROOT / "examples" / "compose" / "app.py"
    done = subprocess.run([sys.executable, app], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "read 10 orders\n"), done.stderr
