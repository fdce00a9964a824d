"""Settings with which a Kafka broker does not start (KafkaConfig.validateValues, AbstractKafkaConfig, core C.3)."""

import pytest

from broker.options import OptionError, ServeOptions, parse
from broker.options.settings import FOR_TESTS
from broker.settings.releases import NAMES
from broker.start.server import settings_for_tests


def started(*settings: str, **options: list[str]) -> ServeOptions:
    """The options of a server with these settings."""
    return parse({"set": settings, **options})


def refusal(*settings: str, **options: list[str]) -> str:
    """The sentence with which a server refuses these settings."""
    with pytest.raises(OptionError) as refused:
        started(*settings, **options)
    return str(refused.value)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            ["group.consumer.session.timeout.ms=1000"],
            "; group.consumer.session.timeout.ms is 1000, group.consumer.min.session.timeout.ms is 45000 by default",
        ),
        (["group.share.heartbeat.interval.ms=4999"], "greater than or equal to group.share.min.heartbeat.interval.ms"),
        (["group.streams.num.standby.replicas=3"], "group.streams.max.standby.replicas is 2 by default"),
        (["group.coordinator.rebalance.protocols=consumer"], "group.coordinator.rebalance.protocols must contain"),
        (["group.consumer.assignors=Uniform"], "Invalid value Uniform for configuration group.consumer.assignors: "),
        (["group.share.assignors=simple,a.B"], "group.share.assignors must contain exactly one assignor"),
        (["group.streams.assignors="], "Configuration 'group.streams.assignors' must not be empty."),
        (["group.streams.rack.aware.assignment.tags=a,a"], "must not contain duplicate tag keys"),
        (["log.retention.minutes=0"], "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        (["log.roll.ms=0"], "Invalid value 0 for configuration log.roll.ms: Value must be at least 1"),
        (["log.flush.scheduler.interval.ms=-1"], "Invalid value -1 for configuration log.flush.scheduler.interval.ms"),
        (["log.cleaner.threads=0"], "log.cleaner.threads=0 must be at least 1"),
        (["log.cleaner.threads=128"], "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread"),
        (["log.cleaner.min.compaction.lag.ms=6", "log.cleaner.max.compaction.lag.ms=5"], "less than or equal to"),
        (["cordoned.log.dirs=*,/a"], "When cordoned.log.dirs is set to *, it must not contain other values"),
        (["cordoned.log.dirs=/a"], "must be present in log.dirs or log.dir"),
        (
            ["remote.log.storage.system.enable=true", "log.local.retention.ms=6", "log.retention.ms=5"],
            "Invalid value 6 for configuration log.local.retention.ms: Value must not be more than log.retention.ms",
        ),
        (["offsets.topic.compression.codec=5"], "offsets.topic.compression.codec=5 must be the id of a codec, 0 to 4"),
        (
            ["replica.lag.time.max.ms=499"],
            "replica.fetch.wait.max.ms is 500 by default, replica.lag.time.max.ms is 499",
        ),
        (
            ["queued.max.request.bytes=1"],
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        ),
        (["connections.max.idle.ms=100"], "connection.failed.authentication.delay.ms is 100 by default"),
        (["max.connections.per.ip.overrides=ho*st:5"], "contains the invalid address 'ho*st'"),
        (["max.connections.per.ip.overrides=a:99999999999"], "needs HOST:NUMBER, not 'a:99999999999'"),
        (["listener.security.protocol.map=A:SSL,a:SSL"], "listener.security.protocol.map names listener A twice"),
        (["listeners=A://:1"], "no security protocol is defined for listener A of listeners: add it to listener.sec"),
        (["listeners=PLAINTEXT://h st:1"], "listeners needs NAME://HOST:PORT, not 'PLAINTEXT://h st:1'"),
        (
            ["listeners=PLAINTEXT://:1,CONTROLLER://:2", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT"],
            "no security protocol is defined for listener CONTROLLER of listeners",
        ),
        (["listeners=PLAINTEXT://0.0.0.0:1"], "clients cannot connect to 0.0.0.0: set advertised.listeners"),
        (["advertised.listeners=PLAINTEXT://0.0.0.0:1"], "clients cannot connect to 0.0.0.0: set advertised.listeners"),
        (["advertised.listeners=PLAINTEXT://h:1,CONTROLLER://0.0.0.0:1"], "clients cannot connect to 0.0.0.0"),
        (["advertised.listeners=SSL://h:1"], "advertised.listeners names SSL, which is not in listeners: PLAINTEXT"),
        (["advertised.listeners=PLAINTEXT://a:1,PLAINTEXT://b:1"], "advertised.listeners must have a different name"),
        (["advertised.listeners=CONTROLLER://a:1"], "at least one listener that is not in controller.listener.names"),
        (["early.start.listeners=X"], "early.start.listeners has X, which is neither in listeners nor in controller."),
        (["inter.broker.listener.name="], "inter.broker.listener.name is empty, which is not in listener.security.pr"),
        (["inter.broker.listener.name=SSL"], "inter.broker.listener.name is SSL, which is not among the advertised"),
        (["security.inter.broker.protocol=SSL"], "security.inter.broker.protocol is SSL, which is not among the adv"),
        (
            ["inter.broker.listener.name=PLAINTEXT", "security.inter.broker.protocol=PLAINTEXT"],
            "only one of inter.broker.listener.name and security.inter.broker.protocol should be set",
        ),
        (
            [
                *("listeners=SASL_PLAINTEXT://:1", "inter.broker.listener.name=SASL_PLAINTEXT"),
                "sasl.enabled.mechanisms=SCRAM-SHA-256",
            ],
            "sasl.mechanism.inter.broker.protocol is GSSAPI, which is not in sasl.enabled.mechanisms of listener SASL_",
        ),
        (["node.id=1", "broker.id=2"], "node.id and broker.id must have the same value"),
    ],
)
def test_a_server_refuses_what_kafka_refuses(settings: list[str], sentence: str) -> None:
    """In one sentence that names the settings, with the values that the user did not give."""
    refused = refusal(*settings)
    assert sentence in refused
    assert "\n" not in refused


def test_a_settings_file_is_checked_in_what_is_ignored_too() -> None:
    """A setting of the machine has no effect here, but with an invalid value Kafka would not start."""
    wrong = refusal(properties=["num.io.threads=0"])
    assert wrong.startswith("server.properties num.io.threads=0: Invalid value 0 for configuration num.io.threads")
    assert "controller.quorum.voters" in refusal(properties=["controller.quorum.voters=1@a"])
    assert started(properties=["log.dirs=/a,/b", "cordoned.log.dirs=/b", "zookeeper.connect=h:1"]).brokers == 1
    assert started(**{"properties": ["process.roles="], "as-version": ["3.9"]}).brokers == 1


def test_brokers_need_no_listeners_for_each_other_or_for_a_controller() -> None:
    """They communicate inside the process: Kafka's rules for these listeners apply only where one is given."""
    guarded = ("listeners=SASL_PLAINTEXT://:1", "sasl.enabled.mechanisms=SCRAM-SHA-256")
    assert started(*guarded).listeners[0][0].protocol == "SASL_PLAINTEXT"
    assert started("controller.quorum.voters=9@h:1", "node.id=2", "process.roles=broker").broker_ids == (2,)
    named = started("inter.broker.listener.name=net", listener=["NET://127.0.0.1:7,advertised=kafka:7"])
    assert [each.name for each in named.listeners[0]] == ["PLAINTEXT", "NET"]


@pytest.mark.parametrize("release", NAMES)
def test_the_defaults_of_every_release_fit_together(release: str) -> None:
    """With the settings for tests, and without them."""
    assert parse({"as-version": [release]}).settings == {}
    assert parse({"as-version": [release], "for-tests": [""]}).settings == FOR_TESTS


def test_the_banner_names_the_settings_that_differ_from_kafkas() -> None:
    """Each with Kafka's default, and how to get it; none that was set, and no line without `--for-tests`."""
    lines = settings_for_tests(parse({"for-tests": [""], "set": ["group.initial.rebalance.delay.ms=7"]}))
    assert "UNDERSTUDY_FOR_TESTS=false" in lines[1]
    assert "  group.streams.initial.rebalance.delay.ms=0 (Kafka: 3000)" in lines
    assert "  understudy.auto.create.topics.at.once=true (Kafka: false)" in lines
    assert len(lines) == 2 + len(FOR_TESTS) - 1
    assert not any("group.initial." in line for line in lines)
    assert settings_for_tests(parse({})) == []
