"""A directory of a real broker with settings, members and leaders that changed: an audit finds nothing in it."""

import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from pipeline.audits.findings import ask_all
from pipeline.audits.registry import chosen
from pipeline.duck.tables import DuckTables
from tests.pipeline.traffic import done
from tests.storage.kafka_tools import RealBroker, need_kafka
from tests.swap.nodes import KAFKA_SETTINGS

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]

PATIENCE_S = 60
SETTINGS = {
    "cleanup.policy": "compact, delete",
    "retention.ms": " 600000 ",
    "preallocate": "TRUE",
    "segment.ms": "+5000",
}
GROUPS = {"classic": {}, "consumer": {"group.protocol": "consumer"}}
CHECKS = ("leader-epoch-unknown", "setting-invalid", "setting-without-topic", "assignment-unknown", "format-regress")


def findings_of(directory: Path) -> tuple[list[str], int, int]:
    """What an audit reports, the settings in the metadata, and the partitions that members own."""
    tables = DuckTables(str(directory))
    tables.register(records=True)
    checks = [check for check in chosen(has=["records"]) if check.severity != "info"]
    assert set(CHECKS) <= {check.name for check in checks}
    reported = [f"{each.check.name}, {each.count} times: {each.rows[:3]}" for each in ask_all(tables.engine, checks)]
    counted = "SELECT count(*) AS n FROM state_metadata WHERE type = 'ConfigRecord'"
    owned = "SELECT (SELECT count(*) FROM group_tasks) + (SELECT sum(len(members)) FROM state_groups) AS n"
    numbers = [tables.engine.plain(sql).to_pylist()[0]["n"] for sql in (counted, owned)]
    tables.forget()
    return reported, numbers[0], numbers[1]


def create_topics(admin: AdminClient, *names: str) -> None:
    """Create topics with settings."""
    done(admin.create_topics([NewTopic(name, 2, 1, config=SETTINGS) for name in names]))


def altered(admin: AdminClient, kind: ResourceType, name: str, **settings: str) -> None:
    """Set something."""
    entries = [
        ConfigEntry(each.replace("_", "."), text, incremental_operation=AlterConfigOpType.SET)
        for each, text in settings.items()
    ]
    done(admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=entries)]))


def test_settings_members_and_leaders_that_change_are_no_finding(tmp_path: Path) -> None:
    """Topics are deleted, and made again, under members that own them; the broker is killed and starts again."""
    need_kafka()
    broker = RealBroker(tmp_path, KAFKA_SETTINGS)
    broker.start()
    consumers = []
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        create_topics(admin, "stays", "goes", "again")
        altered(admin, ResourceType.TOPIC, "goes", retention_bytes="1000")
        altered(admin, ResourceType.BROKER, "1", log_cleaner_threads="2")
        altered(admin, ResourceType.GROUP, "consumer", consumer_session_timeout_ms="50000")
        fill(broker)
        for group, options in GROUPS.items():
            settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
            consumers.append(Consumer({**settings, **options}))
            consumers[-1].subscribe(["stays", "goes", "again"])
            assert len(consumers[-1].consume(10, PATIENCE_S)) == 10
        done(admin.delete_topics(["goes", "again"]))
        broker.stop(clean=False)
        nothing, settings_seen, owned = findings_of(broker.data)
        assert (nothing, settings_seen > 12, owned > 6) == ([], True, True)
        broker.start()
        create_topics(admin, "again")
        fill(broker, "stays", "again")
        assert findings_of(broker.data)[0] == []
    finally:
        for consumer in consumers:
            threading.Thread(target=consumer.close, daemon=True).start()
        broker.stop()
    assert findings_of(broker.data)[0] == []


def fill(broker: RealBroker, *topics: str) -> None:
    """Records with keys for each topic."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number in range(60):
        for topic in topics or ("stays", "goes", "again"):
            producer.produce(topic, b"%d" % number, b"%d" % (number % 7))
    assert producer.flush(PATIENCE_S) == 0
