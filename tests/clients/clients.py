"""The clients, and how the driver of each is built.

Every driver is built into the cache; what it depends on is fetched there by `setup.sh`, which is asked for the driver's
part before.
"""

import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.clients.drivers import HERE, Driver, UnavailableError, command, java_classes
from tests.clients.steps import GROUP_LOAD_STEPS, STEPS, TOOL_STEPS
from tests.clients.targets import CACHE, JVM, KAFKA_VERSION, kafka_libs
from tests.clients.transactions.steps import GO_TRANSACTION_STEPS, STREAMS_STEPS, TOOLS_STEPS, TRANSACTION_STEPS

JAVA_VERSIONS = ("4.3.1", "3.9.1", "2.8.2")  # as in setup.sh
STREAMS_VERSIONS = ("4.3.1", "4.4.0")  # likewise


# ---------------------------------------------------------------- python


def _python(name: str, module: str, environment: str | None = None, steps: Iterable[str] = STEPS) -> Driver:
    """A client of this environment, or of one that setup.sh makes."""

    def build() -> Sequence[str]:
        interpreter = CACHE / "python" / environment / "bin" / "python" if environment else sys.executable
        return [str(interpreter), "-m", f"tests.clients.{module}"]

    return Driver(name, (), "python" if environment else None, build, tuple(steps))


PYTHON = (
    _python("confluent-kafka", "python.confluent"),
    _python("confluent-kafka-2.3", "python.confluent", "confluent-2.3"),
    _python("aiokafka", "python.aio"),
    _python("kafka-python", "python.kafkapython", "kafka-python"),
)

# ---------------------------------------------------------------- java


def compile_java(libs: Path, name: str, *packages: str) -> str:
    """Compile packages of ours against a folder of jars; the class path to run them with."""
    files = [each for package in packages for each in (HERE / "java" / package).glob("*.java")]
    # The jars first: an archive of the classes of jars fits if the class path begins with them.
    return f"{libs}/*:{java_classes(CACHE / 'build' / 'java' / name, libs, files)}"


def _java(version: str, suffix: str, main_class: str, steps: Iterable[str]) -> Driver:
    name = f"kafka-clients-{version}{suffix}"

    def build() -> Sequence[str]:
        packages = {"interop", main_class.split(".", maxsplit=1)[0]}
        return ["java", *JVM, "-cp", compile_java(CACHE / "java" / f"clients-{version}", name, *packages), main_class]

    return Driver(name, ("javac", "mvn"), "java", build, tuple(steps))


def _kafka_tools() -> Sequence[str]:
    return [sys.executable, "-m", "tests.clients.python.tools", str(kafka_libs())]


JAVA = tuple(_java(version, "", "interop.Driver", STEPS) for version in JAVA_VERSIONS)
KAFKA_TOOLS = (Driver("kafka-tools-4.3.1", ("java", "mvn"), "kafka", _kafka_tools, tuple(TOOL_STEPS)),)

# ---------------------------------------------------------------- go


def _go(name: str, folder: str, steps: Iterable[str] = STEPS) -> Driver:
    def build() -> Sequence[str]:
        binary = CACHE / "build" / "go" / folder
        command([CACHE / "go" / "go", "build", "-o", binary, f"./{folder}"], HERE / "go", GOTOOLCHAIN="auto")
        return [str(binary)]

    return Driver(name, ("go",), "go", build, tuple(steps))


GO = (_go("franz-go", "franz", (*STEPS, *GROUP_LOAD_STEPS)), _go("sarama", "sarama"), _go("kafka-go", "kafkago"))

# ---------------------------------------------------------------- javascript


def _javascript(name: str, script: str, native: str | None = None, steps: Iterable[str] = STEPS) -> Driver:
    """A client in JavaScript; `native` is the package that does nothing without its binary."""

    def build() -> Sequence[str]:
        modules = CACHE / "js" / "node_modules"
        if native and not list((modules / native).rglob("*.node")):
            raise UnavailableError(f"{native} has no binary for this machine, and none could be built")
        return ["env", f"NODE_PATH={modules}", "KAFKAJS_NO_PARTITIONER_WARNING=1", "node", str(HERE / "js" / script)]

    return Driver(name, ("node", "npm"), "js", build, tuple(steps))


JAVASCRIPT = (
    _javascript("kafkajs", "kafkajs.js"),
    _javascript("confluent-kafka-javascript", "confluent.js", "@confluentinc/kafka-javascript"),
)

# ---------------------------------------------------------------- rust


def rust_binary(name: str) -> Sequence[str]:
    """Build a binary of the crate; the command that starts it."""
    # The lock file names registries, so the crate is built where none is kept.
    crate, built = CACHE / "build" / "rust" / "crate", CACHE / "build" / "rust" / "target"
    shutil.copytree(HERE / "rust", crate, dirs_exist_ok=True)
    # librdkafka compiles in half the time without optimization, which nothing here needs.
    command(["cargo", "build", "--quiet", "--bin", name], crate, CARGO_TARGET_DIR=str(built), CFLAGS="-O0")
    return [str(built / "debug" / name)]


RUST = (Driver("rust-rdkafka", ("cargo", "g++", "make"), "rust", lambda: rust_binary("interop"), tuple(STEPS)),)

# ---------------------------------------------------------------- transactions


def _kafka_test_tools() -> Sequence[str]:
    return [sys.executable, "-m", "tests.clients.transactions.tools", f"{kafka_libs()}/*", "tools"]


def _streams(version: str) -> Driver:
    """Kafka Streams; the jars of the reference release have it too."""

    def build() -> Sequence[str]:
        libs = kafka_libs() if version == KAFKA_VERSION else CACHE / "java" / f"streams-{version}"
        class_path = compile_java(libs, f"streams-{version}", "streams")
        return [sys.executable, "-m", "tests.clients.transactions.tools", class_path, "streams"]

    return Driver(f"kafka-streams-{version}", ("javac", "mvn"), "streams", build, tuple(STREAMS_STEPS))


TRANSACTIONS = (
    _python("confluent-kafka-transactions", "transactions.confluent", None, TRANSACTION_STEPS),
    _python("confluent-kafka-2.3-transactions", "transactions.confluent", "confluent-2.3", TRANSACTION_STEPS),
    _python("aiokafka-transactions", "transactions.aio", None, TRANSACTION_STEPS),
    _python("kafka-python-transactions", "transactions.kafkapython", "kafka-python", TRANSACTION_STEPS),
    *(_java(version, "-transactions", "transactions.Transactions", TRANSACTION_STEPS) for version in JAVA_VERSIONS),
    _go("franz-go-transactions", "transact", GO_TRANSACTION_STEPS),
    _javascript("kafkajs-transactions", "transactions.js", None, TRANSACTION_STEPS),
    Driver("kafka-test-tools-4.3.1", ("java", "mvn"), "kafka", _kafka_test_tools, tuple(TOOLS_STEPS)),
    *(_streams(version) for version in STREAMS_VERSIONS),
)
