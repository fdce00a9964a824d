from pathlib import Path

import pytest

from broker.endpoints import Endpoint
from broker.options import OptionError, ServeOptions, TopicOption, parse
from understudy.serve import gather

SCRAM = ("--set", "sasl.enabled.mechanisms=SCRAM-SHA-256")
"""A mechanism that needs no further setting."""


def options(*argv: str) -> ServeOptions:
    """What the server makes of a command line."""
    return parse(gather(argv, {}))


def ports(made: ServeOptions) -> list[list[int]]:
    """The port of every listener of every broker."""
    return [[endpoint.port for endpoint in own] for own in made.listeners]


def test_the_defaults_are_one_broker_on_9092_and_control_on_9099() -> None:
    """`understudy serve` without a word."""
    assert options() == ServeOptions()


def test_ports_follow_the_first_unless_they_are_free_or_listed() -> None:
    """One number counts up, 0 stays 0, a list is one each and says how many brokers there are."""
    assert ports(options("--brokers", "3")) == [[9092], [9093], [9094]]
    assert ports(options("--brokers", "2", "--port", "0")) == [[0], [0]]
    assert ports(options("--port", "19092,19095")) == [[19092], [19095]]
    assert options("--port", "19092,19095").brokers == 2


def test_advertise_tells_host_and_counting_ports() -> None:
    """With several brokers PORT counts up; without PORT each tells its own."""
    first, second = (own[0] for own in options("--brokers", "2", "--advertise", "kafka:29092").listeners)
    assert (first.told_host, first.told_port(9092), second.told_host, second.told_port(9093)) == (
        "kafka",
        29092,
        "kafka",
        29093,
    )
    assert options("--advertise", "kafka").listeners[0][0].told_port(1234) == 1234
    assert options("--host", "0.0.0.0").listeners[0][0].told_host == "localhost"
    assert options("--advertise", "[::1]:7").listeners[0][0].told_host == "::1"


def test_a_further_listener_counts_up_like_the_first() -> None:
    """Docker's case: one listener for the host, one for the network."""
    docker = "DOCKER://0.0.0.0:19092,advertised=kafka:29092,protocol=SASL_PLAINTEXT"
    made = options("--brokers", "2", "--listener", docker, *SCRAM)
    assert made.listeners[1][1] == Endpoint("DOCKER", "SASL_PLAINTEXT", "0.0.0.0", 19093, "kafka", 29093)


def test_kafkas_own_listener_settings_are_obeyed() -> None:
    """listeners, advertised.listeners and the protocol map, with the controller's listener left out."""
    made = options(
        *("--set", "listeners=INTERNAL://127.0.0.1:9000,EXTERNAL://0.0.0.0:9100,CONTROLLER://127.0.0.1:9200"),
        *("--set", "advertised.listeners=INTERNAL://127.0.0.1:9000,EXTERNAL://example.org:443"),
        *("--set", "listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"),
        *("--set", "controller.listener.names=CONTROLLER"),
        *SCRAM,
    )
    assert made.listeners == (
        (
            Endpoint("INTERNAL", "PLAINTEXT", "127.0.0.1", 9000, "127.0.0.1", None),
            Endpoint("EXTERNAL", "SASL_PLAINTEXT", "0.0.0.0", 9100, "example.org", 443),
        ),
    )
    assert made.option_of_port(9000) == "--set listeners"


def test_listeners_of_the_settings_take_the_ports_that_were_listed() -> None:
    """A list of ports is obeyed where it begins with the listener's own port."""
    guarded = "listeners=SASL_PLAINTEXT://127.0.0.1:9000"
    made = options("--brokers", "2", "--port", "9000,9500", "--set", guarded, *SCRAM)
    assert ports(made) == [[9000], [9500]]
    assert made.listeners[0][0].protocol == "SASL_PLAINTEXT"


def test_a_topic_may_name_partitions_and_configs() -> None:
    """A config's value may hold commas; the later topic of a name wins."""
    made = options(*("--topic", "a"), *("--topic", "b:3:cleanup.policy=compact,delete,segment.bytes=1048576"))
    assert made.topics == (
        TopicOption("a"),
        TopicOption("b", 3, {"cleanup.policy": "compact,delete", "segment.bytes": "1048576"}),
    )
    assert options("--topic", "a:1", "--topic", "a:2").topics == (TopicOption("a", 2),)


def test_the_other_options_arrive_parsed() -> None:
    """Each in the type that the server works with."""
    made = options(
        *("--feature", "transaction.version=1", "--as-version", "4.0.1", "--data-dir", "d", "--read-only"),
        *("--seed", "7"),
        *("--control-port", "off", "--ready-file", "r.json", "--journal", "j", "--log-format", "json", "--lifeline"),
    )
    assert (made.features, made.as_version, made.data_dir, made.read_only) == (
        {"transaction.version": 1},
        "4.0",
        Path("d"),
        True,
    )
    assert (made.seed, made.control_port, made.ready_file, made.journal_dir) == (7, None, Path("r.json"), Path("j"))
    assert (made.log_format, made.lifeline) == ("json", True)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("--brokers 0", "--brokers needs a number from 1 to 1000, not 0"),
        ("--brokers three", "--brokers needs a whole number, not 'three'"),
        ("--port 70000", "--port needs a port from 0 to 65535, not '70000'"),
        ("--port 65535 --brokers 2", "listener PLAINTEXT of broker 2 would need port 65536"),
        ("--port 1,2 --brokers 3", "--port names 2 ports for --brokers 3"),
        ("--port 9092,9092", "port 9092 is wanted by PLAINTEXT of broker 1 and by PLAINTEXT of broker 2"),
        ("--listener X", "--listener needs NAME://HOST:PORT, not 'X'"),
        ("--listener X://h", "--listener X needs HOST:PORT, not 'h'"),
        ("--listener X://h:1,proto=SSL", "--listener X takes advertised=HOST:PORT and protocol=P, not 'proto=SSL'"),
        ("--listener X://h:1,protocol=TLS", "listener X asks for protocol 'TLS'; there are PLAINTEXT, SSL,"),
        ("--listener PLAINTEXT://h:1", "listener PLAINTEXT is given twice"),
        ("--topic a/b", "--topic 'a/b' does not start with a topic's name"),
        ("--topic a:0", "--topic a needs a number from 1 to 100000, not 0"),
        ("--topic a:1:compact", "--topic a needs KEY=VALUE after the partitions, not 'compact'"),
        ("--set log.retention.sm=1", "Kafka has no such broker setting; did you mean log.retention.ms?"),
        ("--set num.partitions=0", "--set num.partitions=0: "),
        ("--topic a:1:retention.ms=x", "--topic a: Invalid value x"),
        ("--set novalue", "--set needs KEY=VALUE, not 'novalue'"),
        ("--feature transaction.verson=1", "does not exist (did you mean transaction.version?)"),
        ("--as-version 9.9", "--as-version 9.9 is not one of 0.11, 1.0,"),
        ("--feature group.version=1 --as-version 3.9", "with --as-version 3.9, which has no such feature"),
        ("--feature metadata.version=30 --as-version 4.0", "with --as-version 4.0, which has it at 7 to 25"),
        ("--read-only", "--read-only needs --data-dir DIR"),
        ("--control-port x", "--control-port needs a whole number, not 'x'"),
        ("--control-host 0.0.0.0", "can be reached from other machines and needs --control-token TOKEN"),
        ("--log-format jsn", "--log-format is one of console, json, not 'jsn' (did you mean json?)"),
        ("--seed 1.5", "--seed needs a whole number, not '1.5'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(argv: str, sentence: str) -> None:
    """The sentence names the option and what it would take."""
    with pytest.raises(OptionError) as refused:
        options(*argv.split())
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_token_lets_the_control_plane_leave_loopback() -> None:
    """Without one it is refused, with one it is bound."""
    made = options("--control-host", "0.0.0.0", "--control-token", "t")
    assert (made.control_host, made.control_token) == ("0.0.0.0", "t")


def test_a_server_properties_is_taken_for_what_it_says_about_answers(tmp_path: Path) -> None:
    """Limits and listeners count; who and where the real broker is, is ignored and said once."""
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=7\nlog.dirs=/var/lib/kafka\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9192,CONTROLLER://:9093\nmessage.max.bytes=2000\n"
    )
    made = options("--config", str(file))
    assert ports(made) == [[9192]]
    assert made.settings["message.max.bytes"] == "2000"
    assert made.notes == ("of server.properties, these have no meaning here: process.roles, node.id, log.dirs",)
    assert options("--config", str(file), "--set", "message.max.bytes=3000").settings["message.max.bytes"] == "3000"
