"""The Testcontainers example without an engine: the image's own command, with the variables of the test's container."""

import json
import os
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

from confluent_kafka import Message, Producer

from tests.docker_rehearsal import read, variables
from tests.ports import free_ports
from tests.serving import until

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "junit" / "src" / "test" / "java" / "OrdersInContainerTest.java"


def set_by_the_image() -> tuple[list[str], dict[str, str]]:
    """Its command and its variables."""
    steps = read(ROOT / "Dockerfile")
    commands = {step.keyword: step.argv or [] for step in steps if step.keyword in ("ENTRYPOINT", "CMD")}
    answer = {name: value for step in steps if step.keyword == "ENV" for name, value in variables(step.rest).items()}
    return [*commands["ENTRYPOINT"], *commands["CMD"]], answer


def set_by_the_example(port: str) -> dict[str, str]:
    """The variables of its container, where PORT is this one."""
    text = EXAMPLE.read_text(encoding="utf-8")
    pairs = re.findall(r'\.withEnv\("(\w+)", (.+)\)\n', text)
    return {
        name: "".join(port if part == "PORT" else json.loads(part) for part in value.split(" + "))
        for name, value in pairs
    }


def ask(port: str, method: str, path: str, token: str | None = None) -> int:
    """The status of an answer; 0: no server is there."""
    connection = HTTPConnection("localhost", int(port), timeout=60)
    try:
        connection.request(method, path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_the_ports_of_the_example_are_those_of_the_image() -> None:
    """What it binds, exposes and waits for is what the image serves."""
    text, (_, image) = EXAMPLE.read_text(encoding="utf-8"), set_by_the_image()
    assert f'PORT + ":{image["UNDERSTUDY_PORT"]}"' in text
    assert f"withExposedPorts({image['UNDERSTUDY_CONTROL_PORT']})" in text
    assert f".forPort({image['UNDERSTUDY_CONTROL_PORT']})" in text


def test_the_container_does_what_the_example_wants(tmp_path: Path) -> None:
    """Healthy, with its topic and the port that clients use; controlled with the token and not without; it ends well.

    A container's ports are mapped to others; here the ports themselves are others.
    """
    command, image = set_by_the_image()
    assert command[0] == "understudy"
    port, control = map(str, free_ports(2))
    example = set_by_the_example(port)
    ready = str(tmp_path / "ready.json")  # the image has a folder for it
    mapped = {"UNDERSTUDY_PORT": port, "UNDERSTUDY_CONTROL_PORT": control, "UNDERSTUDY_READY_FILE": ready}
    known = {name: value for name, value in os.environ.items() if not name.startswith("UNDERSTUDY_")}
    mine = {name: value for name, value in image.items() if name.startswith("UNDERSTUDY_")}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], env={**known, **mine, **example, **mapped}, stdout=log, stderr=log
        )
    try:
        text = EXAMPLE.read_text(encoding="utf-8")
        path = re.findall(r'Wait\.forHttp\("(.*?)"\)', text)[0]
        until(lambda: ask(control, "GET", path) == 200, "health")
        answer: list[Message] = []
        producer = Producer({"bootstrap.servers": example["UNDERSTUDY_ADVERTISE"]})
        producer.produce("orders", b"one order", on_delivery=lambda _, message: answer.append(message))
        assert producer.flush(60) == 0
        assert (answer[0].error(), answer[0].offset()) == (None, 0)
        (token,) = re.findall(r'"Authorization", "Bearer (\w+)"', text)
        assert ask(control, "POST", "/v1/reset") == 401
        assert ask(control, "POST", "/v1/reset", token) == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()


def test_an_example_without_variables_would_be_seen() -> None:
    """Its variables are found in the file."""
    assert set_by_the_example("7") == {
        "UNDERSTUDY_ADVERTISE": "localhost:7",
        "UNDERSTUDY_TOPIC": "orders:1",
        "UNDERSTUDY_CONTROL_HOST": "0.0.0.0",
        "UNDERSTUDY_CONTROL_TOKEN": "secret",
    }
