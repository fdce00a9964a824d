"""The software itself: where tests/clients/setup.sh puts it, and how a program of it is run."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients.drivers import java_classes
from tests.clients.targets import CACHE, ROOT

HERE = Path(__file__).resolve().parent
SETUP = ROOT / "tests" / "clients" / "setup.sh"
RUN_S = 150.0
JVM = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",  # for Flink's serializers
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


def fetch(part: str, name: str) -> Path:
    """Fetch what a program needs, once; returns its folder. `part` is `python`, `java` or `go`."""
    subprocess.run([SETUP, f"ecosystem/{part}/{name}"], check=True, timeout=580)
    return CACHE / "ecosystem" / part / name


def python(name: str, *arguments: object, program: str | None = None, libraries: str | None = None) -> list[str]:
    """The command that runs a program of python/ with the libraries of its requirements file."""
    interpreter = fetch("python", libraries or name) / "bin" / "python"
    return [str(interpreter), str(HERE / "python" / f"{program or name}.py"), *map(str, arguments)]


def java(name: str, *arguments: object, main: str | None = None, libraries: str | None = None) -> list[str]:
    """The command that runs a program of java/NAME with the jars of its pom, or the class `main` of those jars."""
    libs = fetch("java", libraries or name)
    sources = sorted((HERE / "java" / name).glob("*.java"))
    class_path = f"{libs}/*"
    if main is None:
        class_path = f"{java_classes(CACHE / 'build' / 'java' / f'ecosystem-{name}', libs, sources)}:{class_path}"
        main = sources[0].stem
    return ["java", *JVM, "-cp", class_path, main, *map(str, arguments)]


def quarkus(bootstrap: str) -> list[str]:
    """The command that runs the application of java/quarkus, which is built with its own plugin."""
    app = fetch("java", "quarkus") / "app" / "quarkus-run.jar"
    return ["java", *JVM, f"-Dkafka.bootstrap.servers={bootstrap}", "-jar", str(app)]


def run(command: list[str], folder: Path, expected: int = 0) -> str:
    """Run it to its end in that folder; returns what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    output = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert done.returncode == expected, f"{Path(command[0]).name}: {done.returncode}\n{output}"
    return done.stdout


def printed(command: list[str], folder: Path) -> Any:
    """The JSON document in the last line that it printed."""
    return json.loads(run(command, folder).splitlines()[-1])


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run it beside the test, until the end of the block; its output goes to the file `output` in that folder."""
    with (folder / "output").open("a") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, text=True)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until(condition: Callable[[], bool], process: subprocess.Popen[str], folder: Path) -> None:
    """Ask until the condition holds; fails with the process's output where it ends first, or in `RUN_S`."""
    pause, deadline = threading.Event(), time.monotonic() + RUN_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            why = "is still running" if process.poll() is None else f"ended: {process.returncode}"
            raise AssertionError(f"{why}\n{(folder / 'output').read_text()[-4000:]}")
        pause.wait(0.25)
