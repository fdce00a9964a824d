"""The clients, and how the driver of each is built.

Every driver is built into the cache; what it depends on is fetched there by `setup.sh`, which is asked for the driver's
part before.
"""

import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.clients import kafka_test_tools, script, tools
from tests.clients.drivers import HERE, Driver, Play, UnavailableError, command, java_classes, with_driver
from tests.clients.observed import Report
from tests.clients.steps import LOAD_STEPS, STEPS, TOOL_STEPS
from tests.clients.targets import CACHE, JVM, KAFKA_VERSION, ROOT, Target, kafka_libs
from tests.clients.transactions import script as transactions
from tests.clients.transactions.steps import STREAMS_STEPS, TOOLS_STEPS, TRANSACTION_STEPS

JAVA_VERSIONS = ("4.3.1", "3.9.1", "2.8.2")  # as in setup.sh
STREAMS_VERSIONS = ("4.3.1", "4.4.0")  # likewise


# ---------------------------------------------------------------- python


INTEROP = (tuple(STEPS), with_driver(script.play))
TRANSACTIONAL = (tuple(TRANSACTION_STEPS), with_driver(transactions.play))
"""The steps of a script, and what plays them with a library's driver of the exam."""


def python_driver(module: str, environment: str | None = None) -> Callable[[], Sequence[str]]:
    """The driver of a library of this environment, or of one that setup.sh makes."""
    interpreter = CACHE / "python" / environment / "bin" / "python" if environment else sys.executable
    return lambda: [str(interpreter), "-m", f"tests.exam.drivers.{module}"]


PYTHON = tuple(
    Driver(name, (), environment and "python", python_driver(module, environment), *INTEROP)
    for name, module, environment in (
        ("confluent-kafka", "confluent", None),
        ("confluent-kafka-2.3", "confluent", "confluent-2.3"),
        ("aiokafka", "aio", None),
        ("kafka-python", "kafkapython", "kafka-python"),
    )
)

# ---------------------------------------------------------------- java


def compile_java(libs: Path, name: str, *packages: str) -> str:
    """Compile packages of ours against a folder of jars; the class path to run them with."""
    files = [each for package in packages for each in (HERE / "java" / package).glob("*.java")]
    # The jars first: an archive of the classes of jars fits if the class path begins with them.
    return f"{libs}/*:{java_classes(CACHE / 'build' / 'java' / name, libs, files)}"


def java_driver(version: str) -> Sequence[str]:
    """Build the driver in Java of that version of kafka-clients; the command that starts it."""
    libs = CACHE / "java" / f"clients-{version}"
    command([ROOT / "tools" / "fetch_kafka.sh", libs, "clients", version])
    folder = ROOT / "tests" / "exam" / "drivers" / "java"
    sources = [*(folder / "exam").glob("*.java")]
    if version >= "4":  # the first release with share groups
        sources += (folder / "share").glob("*.java")
    classes = java_classes(CACHE / "build" / "exam" / "java" / version, libs, sources)
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return ["java", *JVM[:-1], quiet, "-cp", f"{classes}:{libs}/*", "exam.Driver"]


def _kafka_tools(libs: Sequence[str], target: Target, topic: str, _: int) -> Report:
    return tools.play(libs[0], target.bootstrap, target.brokers, topic)


JAVA = tuple(
    Driver(f"kafka-clients-{version}", ("javac", "mvn"), "java", partial(java_driver, version), *INTEROP)
    for version in JAVA_VERSIONS
)
KAFKA_TOOLS = (
    Driver("kafka-tools-4.3.1", ("java", "mvn"), "kafka", lambda: [str(kafka_libs())], tuple(TOOL_STEPS), _kafka_tools),
)

# ---------------------------------------------------------------- go


def go_binary(folder: str, **environment: str) -> Sequence[str]:
    """Build a program of the module in `go`, or of the module that the folder is; the command that starts it."""
    command([HERE / "setup.sh", "go"])
    binary = CACHE / "build" / "go" / folder
    command([CACHE / "go" / "go", "build", "-o", binary, "."], HERE / "go" / folder, GOTOOLCHAIN="auto", **environment)
    return [str(binary)]


def _go(name: str, folder: str, script: tuple[tuple[str, ...], Play] = INTEROP) -> Driver:
    return Driver(name, ("go",), "go", lambda: go_binary(f"exam/{folder}"), *script)


GO = (
    _go("franz-go", "franz"),
    _go("sarama", "sarama"),
    _go("kafka-go", "kafkago"),
    Driver("franz-go-load", ("go",), "go", lambda: go_binary("load"), tuple(LOAD_STEPS)),
)

# ---------------------------------------------------------------- javascript


def javascript(program: str, *arguments: str, native: str | None = None) -> Sequence[str]:
    """The command of a program in `js`; `native` is the package that does nothing without its binary."""
    command([HERE / "setup.sh", "js"])
    modules = CACHE / "js" / "node_modules"
    if native and not list((modules / native).rglob("*.node")):
        raise UnavailableError(f"{native} has no binary for this machine, and none could be built")
    node = ["env", f"NODE_PATH={modules}", "KAFKAJS_NO_PARTITIONER_WARNING=1", "node"]
    return [*node, str(HERE / "js" / program), *arguments]


KAFKAJS = Driver("kafkajs", ("node", "npm"), "js", lambda: javascript("exam/kafkajs.js", "--codecs"), *INTEROP)
JAVASCRIPT = (
    KAFKAJS,
    Driver(
        "confluent-kafka-javascript",
        ("node", "npm"),
        "js",
        lambda: javascript("exam/confluent.js", native="@confluentinc/kafka-javascript"),
        *INTEROP,
    ),
)

# ---------------------------------------------------------------- rust


def rust_binary(name: str, package: str = ".") -> Sequence[str]:
    """Build a binary of the crate, or of a package in its folder; the command that starts it."""
    # The lock file names registries, so the crate is built where none is kept.
    crate, built = CACHE / "build" / "rust" / "crate", CACHE / "build" / "rust" / "target"
    shutil.copytree(HERE / "rust", crate, dirs_exist_ok=True)
    # librdkafka compiles in half the time without optimization, which nothing here needs.
    command(["cargo", "build", "--quiet", "--bin", name], crate / package, CARGO_TARGET_DIR=str(built), CFLAGS="-O0")
    return [str(built / "debug" / name)]


RUST = (Driver("rust-rdkafka", ("cargo", "g++", "make"), "rust", lambda: rust_binary("exam"), *INTEROP),)

# ---------------------------------------------------------------- transactions


def _processes(steps: Iterable[str]) -> Callable[..., Report]:
    """Play steps of Kafka's test tools, or of Kafka Streams."""

    def play(class_path: Sequence[str], target: Target, topic: str, _: int) -> Report:
        return kafka_test_tools.play(class_path[0], steps, target.bootstrap, target.brokers, topic)

    return play


def _streams(version: str) -> Driver:
    """Kafka Streams; the jars of the reference release have it too."""

    def build() -> Sequence[str]:
        libs = kafka_libs() if version == KAFKA_VERSION else CACHE / "java" / f"streams-{version}"
        return [compile_java(libs, f"streams-{version}", "streams")]

    steps = tuple(STREAMS_STEPS)
    return Driver(f"kafka-streams-{version}", ("javac", "mvn"), "streams", build, steps, _processes(steps))


TRANSACTIONS = (
    *(
        replace(each, name=f"{each.name}-transactions", steps=TRANSACTIONAL[0], play=TRANSACTIONAL[1])
        for each in (*PYTHON, *JAVA, KAFKAJS)
    ),
    _go("franz-go-transactions", "franz", TRANSACTIONAL),
    Driver(
        "kafka-test-tools-4.3.1",
        ("java", "mvn"),
        "kafka",
        lambda: [f"{kafka_libs()}/*"],
        tuple(TOOLS_STEPS),
        _processes(TOOLS_STEPS),
    ),
    *(_streams(version) for version in STREAMS_VERSIONS),
)
