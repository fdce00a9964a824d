"""AlterConfigs and IncrementalAlterConfigs decide as Kafka does (core C.4); answers are those of a 4.3.1 broker."""

from collections.abc import Mapping

import pytest

from broker.settings import BrokerSettings, ConfigResourceType, Operation
from broker.settings.alter import Alteration, Change, Decision, World, decide
from protocol.errors import ErrorCode, KafkaError

SET, DELETE, APPEND, SUBTRACT = Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT
TOPIC, BROKER, GROUP = ConfigResourceType.TOPIC, ConfigResourceType.BROKER, ConfigResourceType.GROUP
METRICS, LOGGER = ConfigResourceType.CLIENT_METRICS, ConfigResourceType.BROKER_LOGGER
CONFIG, REQUEST = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST
NO_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

REPLICAS = "leader.replication.throttled.replicas"

Stored = Mapping[tuple[int, str], Mapping[str, str]]
FRESH: Stored = {(BROKER, ""): {"min.insync.replicas": "1"}}
Step = tuple[str, int, str | None]


def check_topic_name(name: str) -> None:
    """A stand-in for the metadata's rule."""
    if "!" in name:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "bad name")


def world(stored: Stored | None = None, *, allowed: bool = True, elr: bool = True, first: bool = False) -> World:
    """A cluster with the topic foo, asked at broker 1."""
    overrides = FRESH if stored is None else stored
    settings = BrokerSettings(1)
    settings.set_dynamic(overrides.get((BROKER, ""), {}), overrides.get((BROKER, "1"), {}))
    return World(
        settings=settings,
        stored=lambda resource_type, name: overrides.get((resource_type, name), {}),
        topic_exists=lambda name: name == "foo",
        check_topic_name=check_topic_name,
        may_alter=lambda _type, _name: allowed,
        authorizes_first=first,
        eligible_leader_replicas=elr,
    )


def incremental(resource_type: int, name: str, *steps: Step, within: World | None = None) -> Decision:
    """One resource of an IncrementalAlterConfigs request."""
    changes = [Change(key, value, operation) for key, operation, value in steps]
    (decision,) = decide([Alteration(resource_type, name, changes)], within or world(), incremental=True)
    return decision


def replacing(resource_type: int, name: str, within: World | None = None, **values: str | None) -> Decision:
    """One resource of an AlterConfigs request (underscores for dots)."""
    changes = [Change(key.replace("_", "."), value) for key, value in values.items()]
    (decision,) = decide([Alteration(resource_type, name, changes)], within or world(), incremental=False)
    return decision


REFUSED: list[tuple[str, int, str, list[Step], ErrorCode, str | None]] = [
    (
        "A2",
        TOPIC,
        "foo",
        [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
        REQUEST,
        "Error due to duplicate config keys",
    ),
    (
        "A3",
        TOPIC,
        "foo",
        [("a", SET, None), ("b", APPEND, None), ("c", DELETE, None)],
        REQUEST,
        "Null value not supported for : a, b",
    ),
    (
        "A5",
        BROKER,
        "7",
        [("log.retention.ms", 9, "5")],
        REQUEST,
        "Unexpected broker id, expected 1, but received 7",
    ),
    (
        "A5",
        BROKER,
        "x",
        [("log.retention.ms", SET, "5")],
        REQUEST,
        "Node id must be an integer, but it is: x",
    ),
    ("A6", BROKER, "", [("log.retention.ms", 9, "5")], REQUEST, "Unknown operations type 9"),
    ("A6", TOPIC, "foo", [("retention.ms", 9, "5")], ErrorCode.UNKNOWN_SERVER_ERROR, None),
    (
        "A7",
        BROKER,
        "",
        [("log.retention.ms", APPEND, "5")],
        CONFIG,
        "Config value append is not allowed for config key: log.retention.ms",
    ),
    (
        "A7",
        BROKER,
        "",
        [("log.retention.ms", SUBTRACT, "5")],
        CONFIG,
        "Config value subtract is not allowed for config key: log.retention.ms",
    ),
    ("A7", BROKER, "", [("no.such", APPEND, "5")], CONFIG, "Unknown config name: no.such"),
    ("A7", BROKER, "1", [("super.users", SUBTRACT, "5")], CONFIG, "Unknown config name: super.users"),
    (
        "A7",
        BROKER,
        "",
        [("leader.replication.throttled.rate", SUBTRACT, "5")],
        CONFIG,
        "Unknown config name: leader.replication.throttled.rate",
    ),
    (
        "A11",
        GROUP,
        "g",
        [("streams.rack.aware.assignment.tags", APPEND, "a")],
        CONFIG,
        "Can't APPEND to key streams.rack.aware.assignment.tags because its type is not LIST.",
    ),
    ("A9", 3, "x", [("retention.ms", SET, "5")], REQUEST, "Unknown resource type 3"),
    (
        "A11",
        TOPIC,
        "foo",
        [("retention.ms", APPEND, "5")],
        CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    (
        "A11",
        TOPIC,
        "foo",
        [("bogus", SUBTRACT, "5")],
        CONFIG,
        "Can't SUBTRACT to key bogus because its type is not LIST.",
    ),
    (
        "A11",
        METRICS,
        "s",
        [("metrics", APPEND, "x")],
        CONFIG,
        "Can't APPEND to key metrics because its type is not LIST.",
    ),
    (
        "A11",
        METRICS,
        "s",
        [("metrics", APPEND, "x"), ("interval.ms", SUBTRACT, "5")],
        CONFIG,
        "Can't SUBTRACT to key interval.ms because its type is not LIST.",
    ),
    (
        "A11",
        METRICS,
        "s",
        [("metrics", 9, "x"), ("interval.ms", SUBTRACT, "5")],
        CONFIG,
        "Can't SUBTRACT to key interval.ms because its type is not LIST.",
    ),
    (
        "A6",
        METRICS,
        "s",
        [("metrics", APPEND, "x"), ("interval.ms", 9, "5")],
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ),
    ("A12", TOPIC, "", [("bogus", SET, "1")], REQUEST, "Default topic resources are not allowed."),
    (
        "A12",
        TOPIC,
        "",
        [("retention.ms", APPEND, "1")],
        CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    ("A12", TOPIC, "b!d", [("bogus", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION, "bad name"),
    ("A12", GROUP, "", [("bogus", SET, "1")], REQUEST, "Default group resources are not allowed."),
    ("A12", METRICS, "", [("interval.ms", SET, "500")], REQUEST, "Subscription name can't be empty"),
    ("A13", TOPIC, "missing", [("bogus", SET, "1")], CONFIG, "Unknown topic config name: bogus"),
    (
        "A13",
        TOPIC,
        "foo",
        [("cleanup.policy", SET, "foo")],
        CONFIG,
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    (
        "A13",
        TOPIC,
        "foo",
        [("cleanup.policy", APPEND, "")],
        CONFIG,
        "Configuration 'cleanup.policy' values must not be empty.",
    ),
    ("A13", GROUP, "g", [("bogus", SET, "1")], CONFIG, "Unknown group config name: bogus"),
    ("A13", METRICS, "s", [("foo", SET, "1")], REQUEST, "Unknown client metrics configuration: foo"),
    ("A14", TOPIC, "missing", [("retention.ms", SET, "1")], NO_TOPIC, "The topic 'missing' does not exist."),
    ("A14", TOPIC, "missing", [], NO_TOPIC, "The topic 'missing' does not exist."),
    (
        "ELR",
        BROKER,
        "",
        [("min.insync.replicas", DELETE, None)],
        CONFIG,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    ),
    (
        "ELR",
        BROKER,
        "1",
        [("min.insync.replicas", SET, "2")],
        CONFIG,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    ),
    (
        "ELR",
        BROKER,
        "1",
        [("min.insync.replicas", DELETE, None)],
        CONFIG,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    ),
    (
        "C.3",
        TOPIC,
        "missing",
        [("bogus", SET, "x" * 32768)],
        CONFIG,
        "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
    ),
    ("C.5", LOGGER, "", [("root", SET, "INFO")], REQUEST, "Node id must be an integer, but it is: "),
    ("C.5", LOGGER, "2", [("root", SET, "INFO")], REQUEST, "Unexpected node id. Expected 1, but received 2"),
    ("C.5", LOGGER, "1", [("root", SET, "INFO"), ("x", SET, "INFO")], CONFIG, "Logger x does not exist!"),
]


@pytest.mark.parametrize(("rule", "resource_type", "name", "steps", "code", "message"), REFUSED)
def test_a_refused_change_stores_nothing(
    rule: str, resource_type: int, name: str, steps: list[Step], code: ErrorCode, message: str | None
) -> None:
    """Code and message of each rule, in Kafka's order (core CFG-05, CFG-07, CFG-08)."""
    decision = incremental(resource_type, name, *steps)
    assert (rule, decision) == (rule, Decision(code, message))


def test_CFG_07_a_resource_that_is_listed_twice_is_refused_twice() -> None:
    """And the others proceed, in the order of the request."""
    twice = Alteration(TOPIC, "foo", [Change("retention.ms", "1")])
    broker = Alteration(BROKER, "", [Change("log.retention.ms", "5")])
    first, second, third = decide([twice, broker, twice], world(), incremental=True)
    assert first == third == Decision(REQUEST, "Each resource must appear at most once.")
    assert second == Decision(configs={"min.insync.replicas": "1", "log.retention.ms": "5"})


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "text"),
    [
        (TOPIC, "foo", ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
        (GROUP, "g", ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
        (BROKER, "", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
        (METRICS, "s", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
        (LOGGER, "x", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None),
    ],
)
def test_A10_an_alteration_without_the_right_is_refused(
    resource_type: int, name: str, code: ErrorCode, text: str | None
) -> None:
    """Each kind of resource has its own code; for loggers it comes before all else."""
    decision = incremental(resource_type, name, ("bogus", SET, "1"), within=world(allowed=False))
    assert decision == Decision(code, text)


def test_A8_comes_before_permissions_until_4_3() -> None:
    """The broker looks at its own settings first (core C.4)."""
    decision = incremental(BROKER, "1", ("node.id", SET, "5"), within=world(allowed=False))
    assert decision == Decision(REQUEST, "Cannot update these configs dynamically: [node.id]")


@pytest.mark.parametrize("name", ["1", "", "2", "x"])
def test_a_broker_checks_the_right_before_its_settings_since_4_4(name: str) -> None:
    """Without a text; what is no proper request comes before it still. With the right, the settings count."""
    denied, allowed = world(allowed=False, first=True), world(first=True)
    for step in (("log.retention.ms", SET, "1"), ("log.retention.ms", SET, "x"), ("node.id", SET, "1"), ("a", 9, "1")):
        assert incremental(BROKER, name, step, within=denied) == Decision(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert incremental(BROKER, name, step, within=allowed).error is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    null = Decision(REQUEST, "Null value not supported for : a")
    assert incremental(BROKER, name, ("a", SET, None), within=denied) == null
    assert incremental(METRICS, "m", ("a", SET, "1"), within=denied).message == "Cluster authorization failed."


def test_incremental_changes_touch_the_named_keys_only() -> None:
    """SET stores the text as it came, DELETE of what is not there is no error (core CFG-05)."""
    stored: Stored = {(TOPIC, "foo"): {"retention.ms": "1000", "preallocate": "true"}}
    steps: list[Step] = [("retention.ms", SET, " 7 "), ("segment.ms", DELETE, None), ("preallocate", DELETE, "x")]
    assert incremental(TOPIC, "foo", *steps, within=world(stored)) == Decision(configs={"retention.ms": " 7 "})


def test_CFG_06_alter_configs_replaces_everything() -> None:
    """AlterConfigs removes every setting that it does not list."""
    stored: Stored = {(TOPIC, "foo"): {"retention.ms": "1000", "max.message.bytes": "2000"}}
    assert replacing(TOPIC, "foo", world(stored), retention_ms="3000") == Decision(configs={"retention.ms": "3000"})


@pytest.mark.parametrize(
    ("stored", "step", "result"),
    [
        (None, ("cleanup.policy", APPEND, "compact"), "delete,compact"),
        (None, ("cleanup.policy", APPEND, "delete"), "delete"),
        (None, ("cleanup.policy", SUBTRACT, "delete"), ""),
        ("compact", ("cleanup.policy", APPEND, "delete,compact"), "compact,delete"),
        ("", ("cleanup.policy", APPEND, "compact"), "compact"),
        ("delete,compact", ("cleanup.policy", SUBTRACT, "compact,foo"), "delete"),
        (" delete , compact ", ("cleanup.policy", SUBTRACT, "delete"), " delete , compact "),
        (None, (REPLICAS, APPEND, "0:1,1:1,0:1"), "0:1,1:1"),
        ("compact", ("cleanup.policy", APPEND, "delete,,"), "compact,delete"),
        ("compact", ("cleanup.policy", APPEND, ","), "compact"),
        ("0:1", (REPLICAS, APPEND, ""), "0:1,"),
        (",0:1,,", (REPLICAS, APPEND, "1:1"), "0:1,1:1"),
        ("0:1,0:1,1:1", (REPLICAS, SUBTRACT, "0:1,"), "0:1,1:1"),
        ("0:1,0:1,1:1", (REPLICAS, SUBTRACT, "0:1,0:1"), "1:1"),
    ],
)
def test_CFG_04_lists_are_appended_to_and_subtracted_from(stored: str | None, step: Step, result: str) -> None:
    """From the topic's own value, else the table's default; blanks belong to the stored elements (quirk)."""
    configs = {} if stored is None else {step[0]: stored}
    decision = incremental(TOPIC, "foo", step, within=world({(TOPIC, "foo"): configs}))
    assert decision == Decision(configs={step[0]: result})


def test_a_brokers_list_starts_from_the_tables_default() -> None:
    """Not from the broker's static value (quirk, core C.4.2)."""
    decision = incremental(BROKER, "1", ("log.cleanup.policy", APPEND, "compact"))
    assert decision == Decision(configs={"log.cleanup.policy": "delete,compact"})


def test_elements_that_are_appended_to_a_broker_s_list_must_differ() -> None:
    """One that is there already may be given again (4.4.0)."""
    assert incremental(BROKER, "1", ("log.cleanup.policy", APPEND, "delete,delete")).error is ErrorCode.NONE
    refused = Decision(REQUEST, "Configuration 'log.cleanup.policy' values must not be duplicated.")
    assert incremental(BROKER, "1", ("log.cleanup.policy", APPEND, "compact,compact")) == refused


def test_groups_and_subscriptions_need_not_exist() -> None:
    """Their settings are stored before anything else is known of them (core C.4 A14)."""
    assert incremental(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")).error is ErrorCode.NONE
    assert incremental(METRICS, "s", ("interval.ms", SET, "500")).configs == {"interval.ms": "500"}


def test_unknown_broker_keys_are_stored_for_plugins() -> None:
    """Any name, listeners' prefixes among them (core C.3)."""
    decision = incremental(BROKER, "1", ("custom.thing", SET, "1"), ("listener.name.a.foo", SET, "2"))
    assert decision.configs == {"custom.thing": "1", "listener.name.a.foo": "2"}


def test_alter_configs_of_all_brokers_must_name_min_insync_replicas() -> None:
    """Leaving it out would remove it, which eligible leader replicas do not allow."""
    message = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert replacing(BROKER, "", log_retention_ms="5") == Decision(CONFIG, message)
    both = {"log.retention.ms": "5", "min.insync.replicas": "3"}
    assert replacing(BROKER, "", log_retention_ms="5", min_insync_replicas="3").configs == both


def test_without_eligible_leader_replicas_min_insync_replicas_is_free() -> None:
    """Without the feature ELR, `min.insync.replicas` may be set for one broker and deleted for all."""
    assert incremental(BROKER, "1", ("min.insync.replicas", SET, "2"), within=world(elr=False)).error is ErrorCode.NONE
    assert incremental(BROKER, "", ("min.insync.replicas", DELETE, None), within=world(elr=False)).configs == {}


def test_alter_configs_knows_no_loggers() -> None:
    """IncrementalAlterConfigs checks them and stores nothing (core C.4 A4)."""
    assert replacing(LOGGER, "1", root="INFO") == Decision(REQUEST, "Unknown resource type 8")
    assert incremental(LOGGER, "1", ("root", SET, "INFO")) == Decision()


def test_alter_configs_takes_no_nulls() -> None:
    """The older API refuses a null for any key (core C.4 A3)."""
    decision = replacing(TOPIC, "foo", retention_ms=None, segment_ms=None)
    assert decision == Decision(REQUEST, "Null value not supported for : retention.ms, segment.ms")


@pytest.mark.slow
@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_long_lists_are_edited_at_once(operation: Operation) -> None:
    """Each of ten thousand elements was compared with each of the others: half a second for one value."""
    text = ",".join(format(number, "x") for number in range(6_900))
    for _ in range(100):
        change = incremental(TOPIC, "foo", ("leader.replication.throttled.replicas", operation, text))
        assert (change.error is ErrorCode.NONE) is (operation == SUBTRACT)
