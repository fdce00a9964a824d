from pathlib import Path

import pytest

from broker.cluster.startup import rack_of
from broker.options import OptionError, ServeOptions, TopicOption, parse
from broker.options.settings import FOR_TESTS
from broker.settings.endpoints import Endpoint
from understudy.serve import gather

SCRAM = ("--set", "sasl.enabled.mechanisms=SCRAM-SHA-256")
"""A mechanism that needs no further setting."""


def options(*argv: str) -> ServeOptions:
    """What the server makes of a command line."""
    return parse(gather(argv, {}))


def ports(options: ServeOptions) -> list[list[int]]:
    """The port of every listener of every broker."""
    return [[endpoint.port for endpoint in own] for own in options.listeners]


def test_the_defaults_are_one_broker_on_9092_and_control_on_9099() -> None:
    """`understudy serve` without options."""
    assert options() == ServeOptions()


def test_ports_follow_the_first_unless_they_are_free_or_listed() -> None:
    """One number counts up, 0 stays 0, a list has one each and sets the number of brokers."""
    assert ports(options("--brokers", "3")) == [[9092], [9093], [9094]]
    assert ports(options("--brokers", "2", "--port", "0")) == [[0], [0]]
    assert ports(options("--port", "19092,19095")) == [[19092], [19095]]
    assert options("--port", "19092,19095").brokers == 2


def test_settings_for_tests_give_way_to_what_is_set(tmp_path: Path) -> None:
    """One by one, also to a server.properties; an interval that does not fit a limit that was set stays Kafka's."""
    assert options().settings == {}
    assert options("--for-tests").settings == FOR_TESTS
    properties = tmp_path / "server.properties"
    properties.write_text("group.initial.rebalance.delay.ms=100\ngroup.share.min.heartbeat.interval.ms=4000\n")
    serve_options = options(
        "--for-tests", "--config", str(properties), "--set", "understudy.auto.create.topics.at.once=false"
    )
    assert serve_options.settings["group.initial.rebalance.delay.ms"] == "100"
    assert serve_options.settings["understudy.auto.create.topics.at.once"] == "false"
    assert "group.share.heartbeat.interval.ms" not in serve_options.settings
    assert serve_options.settings["group.consumer.heartbeat.interval.ms"] == "500"


def test_brokers_take_racks_in_turn() -> None:
    """Fewer racks than brokers are a stretched cluster; more are a mistake."""
    serve_options = options("--brokers", "0,1,2", "--rack", "a, b")
    assert [rack_of(serve_options, broker) for broker in (0, 1, 2, 7)] == ["a", "b", "a", None]
    assert rack_of(options(), 1) is None
    for wrong, sentence in (
        ("a,,b", "--rack needs the names of racks"),
        ("a,b", "--rack names 2 racks for --brokers 1"),
    ):
        with pytest.raises(OptionError, match=sentence):
            options("--rack", wrong)


def test_advertise_sets_host_and_counting_ports() -> None:
    """With several brokers PORT counts up; without PORT each advertises its own."""
    first, second = (own[0] for own in options("--brokers", "2", "--advertise", "kafka:29092").listeners)
    assert (first.host_for_clients, first.port_for_clients(9092)) == ("kafka", 29092)
    assert (second.host_for_clients, second.port_for_clients(9093)) == ("kafka", 29093)
    assert options("--advertise", "kafka").listeners[0][0].port_for_clients(1234) == 1234
    assert options("--host", "0.0.0.0").listeners[0][0].host_for_clients == "localhost"
    assert options("--advertise", "[::1]:7").listeners[0][0].host_for_clients == "::1"


def test_a_further_listener_counts_up_like_the_first() -> None:
    """Docker's case: one listener for the host, one for the network."""
    docker = "DOCKER://0.0.0.0:19092,advertised=kafka:29092,protocol=SASL_PLAINTEXT"
    serve_options = options("--brokers", "2", "--listener", docker, *SCRAM)
    assert serve_options.listeners[1][1] == Endpoint("DOCKER", "SASL_PLAINTEXT", "0.0.0.0", 19093, "kafka", 29093)


def test_kafkas_own_listener_settings_are_obeyed() -> None:
    """listeners, advertised.listeners and the protocol map; the controller's listener is no broker's."""
    serve_options = options(
        *("--set", "listeners=INTERNAL://127.0.0.1:9000,EXTERNAL://0.0.0.0:9100,CONTROLLER://127.0.0.1:9200"),
        *("--set", "advertised.listeners=INTERNAL://127.0.0.1:9000,EXTERNAL://example.org:443"),
        *("--set", "listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"),
        *("--set", "controller.listener.names=CONTROLLER"),
        *SCRAM,
    )
    assert serve_options.listeners == (
        (
            Endpoint("INTERNAL", "PLAINTEXT", "127.0.0.1", 9000, "127.0.0.1", None),
            Endpoint("EXTERNAL", "SASL_PLAINTEXT", "0.0.0.0", 9100, "example.org", 443),
        ),
    )
    assert serve_options.controllers[0] == Endpoint("CONTROLLER", "PLAINTEXT", "127.0.0.1", 9200)
    assert serve_options.option_of_port(9000) == "--set listeners"
    assert serve_options.option_of_port(9200) == "--set listeners"


def test_the_controller_listens_where_it_is_wanted() -> None:
    """Nowhere, at a port, or under the name of Kafka's settings; never at a broker's port or under its name."""
    assert options().controllers == ()
    assert options("--set", "listeners=PLAINTEXT://:9000,CONTROLLER://:9200").controllers == ()
    serve_options = options("--brokers", "2", "--host", "0.0.0.0", "--advertise", "kafka", "--controller-port", "9094")
    assert serve_options.controllers[0] == Endpoint("CONTROLLER", "PLAINTEXT", "0.0.0.0", 9094, "kafka")
    assert serve_options.option_of_port(9094) == "--controller-port"
    named = options("--set", "controller.listener.names=C1,C2", "--controller-port", "0").controllers[0]
    assert named == Endpoint("C1", "PLAINTEXT", "127.0.0.1", 0)
    for arguments, problem in (
        (("--controller-port", "x"), "--controller-port"),
        (("--controller-port", "9093", "--brokers", "2"), "port 9093 is used by PLAINTEXT and by the controller"),
        (("--controller-port", "0", "--set", "controller.listener.names=PLAINTEXT"), "listener PLAINTEXT"),
    ):
        with pytest.raises(OptionError, match=problem):
            options(*arguments)


def test_listeners_of_the_settings_take_the_ports_that_were_listed() -> None:
    """A list of ports is obeyed where it begins with the listener's own port."""
    guarded = "listeners=SASL_PLAINTEXT://127.0.0.1:9000"
    serve_options = options("--brokers", "2", "--port", "9000,9500", "--set", guarded, *SCRAM)
    assert ports(serve_options) == [[9000], [9500]]
    assert serve_options.listeners[0][0].protocol == "SASL_PLAINTEXT"


def test_a_topic_may_name_partitions_and_configs() -> None:
    """A config's value may hold commas; the later topic of a name wins."""
    serve_options = options(*("--topic", "a"), *("--topic", "b:3:cleanup.policy=compact,delete,segment.bytes=1048576"))
    assert serve_options.topics == (
        TopicOption("a"),
        TopicOption("b", 3, {"cleanup.policy": "compact,delete", "segment.bytes": "1048576"}),
    )
    assert options("--topic", "a:1", "--topic", "a:2").topics == (TopicOption("a", 2),)


def test_the_other_options_arrive_parsed() -> None:
    """Each in the type that the server works with."""
    serve_options = options(
        *("--feature", "transaction.version=1", "--as-version", "4.0.1", "--data-dir", "d", "--read-only"),
        *("--seed", "7"),
        *("--control-port", "off", "--ready-file", "r.json", "--journal", "j", "--log-format", "json", "--lifeline"),
    )
    assert (serve_options.features, serve_options.as_version, serve_options.data_dirs, serve_options.read_only) == (
        {"transaction.version": 1},
        "4.0",
        (Path("d"),),
        True,
    )
    assert (serve_options.seed, serve_options.control_port, serve_options.ready_file, serve_options.journal_dir) == (
        7,
        None,
        Path("r.json"),
        Path("j"),
    )
    assert (serve_options.log_format, serve_options.lifeline) == ("json", True)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("--brokers 0", "--brokers needs a number from 1 to 1000, or a list of ids such as 0,1,2, not '0'"),
        ("--brokers three", "--brokers needs a number from 1 to 1000, or a list of ids such as 0,1,2, not 'three'"),
        ("--port 70000", "--port needs a port from 0 to 65535, not '70000'"),
        ("--port 65535 --brokers 2", "listener PLAINTEXT of broker 2 would need port 65536"),
        ("--port 9092 --brokers 2 --advertise h:65535", "listener PLAINTEXT of broker 2 would need port 65536"),
        ("--port 0000000000000000000092", "--port needs a port from 0 to 65535, not '0000000000000000000092'"),
        ("--port 1,2 --brokers 3", "--port names 2 ports for --brokers 3"),
        ("--port 9092,9092", "port 9092 is used by PLAINTEXT of broker 1 and by PLAINTEXT of broker 2"),
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
        (
            "--set max.connections.per.ip.overrides=h:x",
            "max.connections.per.ip.overrides=h:x needs HOST:NUMBER, not 'h:x'",
        ),
        ("--set max.connections.per.ip=0", "max.connections.per.ip can be set to zero only if max.connections.per.ip."),
        ("--topic a:1:retention.ms=x", "--topic a: Invalid value x"),
        ("--set novalue", "--set needs KEY=VALUE, not 'novalue'"),
        ("--feature transaction.verson=1", "does not exist (did you mean transaction.version?)"),
        ("--as-version 9.9", "--as-version 9.9 cannot be emulated: there are 0.11 to 4.4 (did you mean 3.9?)"),
        ("--as-version 3.10", "--as-version 3.10 cannot be emulated: there are 0.11 to 4.4 (did you mean 3.1?)"),
        ("--feature transaction.version=9", "transaction.version=9 is not a level of Kafka 4.4, which has 0 to 2"),
        ("--feature metadata.version=99", "metadata.version=99 is not a level of Kafka 4.4, which has 7 to 33"),
        ("--topic __consumer_offsets:1", "--set offsets.topic.num.partitions=N sets its number of partitions"),
        ("--topic a:1:cleanup.polcy=compact", "no topic setting cleanup.polcy (did you mean cleanup.policy?)"),
        ("--feature group.version=1 --as-version 3.9", "with --as-version 3.9, which has no such feature"),
        ("--feature metadata.version=30 --as-version 4.0", "with --as-version 4.0, which has it at 7 to 25"),
        ("--read-only", "--read-only needs --data-dir DIR"),
        ("--control-port x", "--control-port needs a whole number, not 'x'"),
        ("--control-token \u2603", "--control-token has a character that no client can send; use letters and digits"),
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
    serve_options = options("--control-host", "0.0.0.0", "--control-token", "t")
    assert (serve_options.control_host, serve_options.control_token) == ("0.0.0.0", "t")


def test_a_server_properties_is_read_for_what_clients_see(tmp_path: Path) -> None:
    """Limits and listeners are taken; the real broker's id and addresses are ignored, with one warning."""
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=7\nlog.dirs=/var/lib/kafka\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9192,CONTROLLER://:9093\nmessage.max.bytes=2000\n"
    )
    serve_options = options("--config", str(file))
    assert ports(serve_options) == [[9192]]
    assert serve_options.controllers[0] == Endpoint("CONTROLLER", "PLAINTEXT", "", 9093)
    assert serve_options.broker_ids == (7,)
    assert (serve_options.settings["message.max.bytes"], serve_options.settings["log.dirs"]) == (
        "2000",
        "/var/lib/kafka",
    )
    assert serve_options.notes == ("settings of server.properties that are ignored: process.roles",)
    assert options("--config", str(file), "--set", "message.max.bytes=3000").settings["message.max.bytes"] == "3000"


def test_a_server_properties_may_keep_leaders_where_they_are(tmp_path: Path) -> None:
    """It has an effect, since leaders return to their preferred replicas."""
    file = tmp_path / "server.properties"
    file.write_text("auto.leader.rebalance.enable=false\nleader.imbalance.check.interval.seconds=60\n")
    serve_options = options("--config", str(file))
    assert serve_options.settings["auto.leader.rebalance.enable"] == "false"
    assert serve_options.settings["leader.imbalance.check.interval.seconds"] == "60"
    assert serve_options.notes == ()


def test_a_secret_on_the_command_line_is_refused() -> None:
    """With the advice to use a file or the environment, and without its value; in a file it is taken."""
    name = "listener.name.x.plain.sasl.jaas.config"
    with pytest.raises(OptionError) as refused:
        options("--set", f"{name}=a.B required user_alice=hush;")
    assert name in str(refused.value)
    assert "--config" in str(refused.value)
    assert "UNDERSTUDY_SET_" in str(refused.value)
    assert "hush" not in str(refused.value)
    assert parse(gather([], {"UNDERSTUDY_SET": f"{name}=x"})).settings == {name: "x"}
    assert options("--set", "log.retention.ms=1").settings == {"log.retention.ms": "1"}


def test_unknown_settings_are_errors_or_notes_as_asked(tmp_path: Path) -> None:
    """By default those of the command line are errors, and those of a real broker's file are noted."""
    file = tmp_path / "server.properties"
    file.write_text("bogus.of.file=1\nlog.dirs=/somewhere\nlog.retention.ms=7\n", encoding="utf-8")
    serve_options = options(
        "--config", str(file), "--no-strict-settings", "--set", "bogus.of.line=1", "--set", "num.partitions=2"
    )
    assert serve_options.settings == {"log.dirs": "/somewhere", "log.retention.ms": "7", "num.partitions": "2"}
    assert serve_options.notes == (
        "settings of server.properties that are ignored: bogus.of.file",
        "unknown settings of --set that are ignored: bogus.of.line",
    )
    with pytest.raises(OptionError, match=r"server\.properties bogus\.of\.file=1: Kafka has no such broker setting"):
        options("--config", str(file), "--strict-settings")
    with pytest.raises(OptionError, match=r"--set bogus\.of\.line=1: Kafka has no such broker setting"):
        options("--config", str(file), "--set", "bogus.of.line=1")
    with pytest.raises(OptionError, match="cannot be combined"):
        options("--strict-settings", "--no-strict-settings")
    known = tmp_path / "known.properties"
    known.write_text("log.dirs=/somewhere\nlog.retention.ms=7\n", encoding="utf-8")
    assert options("--config", str(known), "--strict-settings").settings == {
        "log.dirs": "/somewhere",
        "log.retention.ms": "7",
    }


def test_an_address_for_clients_needs_no_listeners() -> None:
    """advertised.listeners alone is about Kafka's default listener; --advertise takes precedence."""
    advertised = ("--set", "advertised.listeners=PLAINTEXT://kafka:29092", "--brokers", "2")
    first, second = (own[0] for own in options(*advertised).listeners)
    assert (first.host_for_clients, first.port_for_clients(9092)) == ("kafka", 29092)
    assert (second.host_for_clients, second.port_for_clients(9093)) == ("kafka", 29093)
    assert options(*advertised, "--advertise", "h:1").listeners[0][0].host_for_clients == "h"


def test_ipv4_and_ipv6_may_use_the_same_port() -> None:
    """One listener each, as in Kafka (KIP-797); an address and a name may not."""
    both = ("--set", "listeners=A://127.0.0.1:9000,B://[::1]:9000")
    protocols = ("--set", "listener.security.protocol.map= A : PLAINTEXT ,B:PLAINTEXT")
    assert ports(options(*both, *protocols)) == [[9000, 9000]]
    with pytest.raises(OptionError, match="port 9000 is used by A of broker 1 and by B of broker 1"):
        options("--set", "listeners=A://127.0.0.1:9000,B://localhost:9000", *protocols)


def test_blanks_around_an_id_do_not_count() -> None:
    """A Java properties file keeps those at the end of a line."""
    assert options("--set", "node.id= 7 ").broker_ids == (7,)
    assert options("--set", "node.id=7", "--set", "broker.id=7").broker_ids == (7,)
