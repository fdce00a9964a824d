"""The tables hold every public setting of Kafka 4.4, and nothing that Kafka would not accept itself."""

import re
from pathlib import Path

import pytest

from broker.options.released import setting_tables
from broker.settings import BrokerSettings, docs
from broker.settings.definition_order import as_defined
from broker.settings.groups import validate
from broker.settings.model import ConfigType, Row, UpdateMode, Visibility
from broker.settings.releases import NAMES
from broker.settings.tables import BROKER, CLIENT_METRICS, GROUP, TOPIC
from broker.settings.values import drops_duplicates, parse, shown
from protocol.errors import KafkaError

# core appendix 2 and appendix 3. The three throttled rates are listed only when they are set.
PUBLIC = {"broker": 343 - 3 + 1 + 10, "topic": 33 + 4, "group": 17 + 4, "client metrics": 3}

TABLES = {"broker": BROKER, "topic": TOPIC, "group": GROUP, "client metrics": CLIENT_METRICS}
ALL_ROWS = [row for table in TABLES.values() for row in table.values()]

SPECIFICATION = Path(__file__).parents[3] / "docs" / "specification" / "core"
OF_THE_AUTHORIZER = {"allow.everyone.if.no.acl.found", "super.users"}
"""Settings of StandardAuthorizer: KafkaConfig defines neither of them."""

NEWER = (
    "errors.deadletterqueue.group.enable",
    "remote.copy.lag.ms",
    "errors.deadletterqueue.auto.create.topics.enable",
    "group.streams.assignors",
    "log.remote.copy.lag.bytes",
    "sasl.oauthbearer.allow.unverified.issuer",
    "streams.assignor.name",
)

KINDS: dict[ConfigType, type | tuple[type, ...]] = {
    ConfigType.BOOLEAN: bool,
    ConfigType.SHORT: int,
    ConfigType.INT: int,
    ConfigType.LONG: int,
    ConfigType.DOUBLE: float,
    ConfigType.LIST: tuple,
    ConfigType.STRING: str,
    ConfigType.CLASS: str,
    ConfigType.PASSWORD: str,
}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_of_kafka_has_a_row(name: str) -> None:
    """The count is that of the appendix (plus log.initial.task.delay.ms, internal in Kafka)."""
    public = [row for row in TABLES[name].values() if row.visibility is Visibility.PUBLIC]
    assert len(public) == PUBLIC[name]


def test_every_public_setting_has_its_line_in_an_appendix() -> None:
    """core appendix 2 and appendix 3; `log.initial.task.delay.ms` is internal in Kafka."""
    pages = [page.read_text(encoding="utf-8") for page in SPECIFICATION.glob("appendix-[23]-*.md")]
    documented = {name for page in pages for name in re.findall(r"^\| ([a-z0-9.]+) ", page, re.MULTILINE)}
    rows = [row for table in (BROKER, TOPIC, GROUP) for row in table.values()]
    public = {row.name for row in rows if row.visibility is Visibility.PUBLIC}
    assert public - documented == {"log.initial.task.delay.ms"}


@pytest.mark.parametrize("kind", ["broker", "topic", "group"])
def test_every_setting_has_its_place_in_kafkas_order(kind: str) -> None:
    """What `definition_order.txt` does not list comes after an unknown name, which sorts last."""
    ordered = as_defined(kind, ["unknown.setting", *TABLES[kind]])
    unlisted = set(ordered[ordered.index("unknown.setting") + 1 :]) - OF_THE_AUTHORIZER
    assert {name for name in unlisted if not name.startswith("understudy.")} == set()


@pytest.mark.parametrize("name", NEWER)
def test_names_of_4_4_are_unknown_before(name: str) -> None:
    """What came with 4.4 is refused where 4.3 is played."""
    settings = BrokerSettings(1, {})
    assert any(name in table for table in TABLES.values())
    settings.emulate(setting_tables("4.3"))
    assert settings.topic_row(name) is None
    assert settings.broker_row(name) is None
    if name in GROUP:
        with pytest.raises(KafkaError):
            validate({name: "sticky"}, settings)


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: row.name)
def test_a_default_is_what_its_own_text_means(row: Row) -> None:
    """Printing a default and reading it again gives the same value, and no check refuses it."""
    if row.default is None:
        assert shown(row.default) is None
        return
    assert isinstance(row.default, KINDS[row.type])
    assert parse(row, shown(row.default) or "") == row.default


def test_only_broker_settings_have_an_update_mode() -> None:
    """102 names can be changed while the broker runs (core appendix 3)."""
    kafkas = [row for name, row in BROKER.items() if not name.startswith("understudy.")]
    modes = [row.mode for row in kafkas if row.mode is not UpdateMode.READ_ONLY]
    assert (modes.count(UpdateMode.CLUSTER_WIDE), modes.count(UpdateMode.PER_BROKER)) == (65 + 5 + 3, 37)
    others = [*TOPIC.values(), *GROUP.values(), *CLIENT_METRICS.values()]
    assert all(row.mode is UpdateMode.READ_ONLY for row in others)


def test_synonyms_name_broker_settings_of_the_same_kind() -> None:
    """Each topic and group default comes from settings that exist and are of a fitting type."""
    for row in (*TOPIC.values(), *GROUP.values()):
        for synonym in row.synonyms:
            default = BROKER[synonym.name].default
            first = default[0] if row.name == "streams.assignor.name" and isinstance(default, tuple) else default
            assert isinstance(first, KINDS[row.type]) or first is None


def test_lists_keep_duplicates_only_where_a_check_reads_them() -> None:
    """ConfigDef.ValidList drops duplicates; throttled replicas and quorum addresses have validators of their own."""
    kept = {row.name for row in ALL_ROWS if row.type is ConfigType.LIST and not drops_duplicates(row)}
    assert kept == {
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "follower.replication.throttled.replicas",
        "streams.rack.aware.assignment.tags",
        "leader.replication.throttled.replicas",
    }


@pytest.mark.parametrize(
    ("table", "documented"),
    [(BROKER, docs.BROKER), (TOPIC, docs.TOPIC), (GROUP, docs.GROUP), (CLIENT_METRICS, docs.CLIENT_METRICS)],
)
def test_every_setting_describes_its_purpose(table: dict[str, Row], documented: dict[str, str]) -> None:
    """One text per row, of at least four words, ending as a sentence does."""
    removed: set[str] = set()
    for release in NAMES:
        tables = setting_tables(release)
        removed |= tables.removed.keys() if table is BROKER else tables.topic.keys() if table is TOPIC else set()
    assert table.keys() | removed == documented.keys()
    assert all(len(text.split()) >= 4 and text.endswith(".") for text in documented.values())
