"""Debezium: the changes of a PostgreSQL table as records."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.ecosystem.cluster import Cluster
from tests.ecosystem.connect import worker
from tests.ecosystem.postgres import postgres

pytestmark = [pytest.mark.nightly, pytest.mark.interop, pytest.mark.timeout(900)]

TOPIC = "shop.public.orders"
JSON = "org.apache.kafka.connect.json.JsonConverter"
CONFIGURATION = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.hostname": "127.0.0.1",
    "database.user": "postgres",
    "database.password": "any",
    "database.dbname": "postgres",
    "topic.prefix": "shop",
    "plugin.name": "pgoutput",
    "table.include.list": "public.orders",
    "exactly.once.support": "required",
    "key.converter": JSON,
    "value.converter": JSON,
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
}


def test_every_change_is_there_once_after_the_worker_was_killed(kafka: Cluster, tmp_path: Path) -> None:
    """A snapshot, then what changed while no worker ran, then what changes while one does."""
    with postgres() as database:
        database.psql("create table orders (id int primary key, state text)")
        database.psql("insert into orders select n, 'new' from generate_series(1, 50) n")
        with worker(kafka.bootstrap, tmp_path, "debezium") as first:
            first.put("orders", CONFIGURATION | {"database.port": str(database.port)})
            first.until(lambda: TOPIC in kafka.topics() and len(kafka.read(TOPIC)) >= 50)
            first.process.kill()
        database.psql("update orders set state = 'paid' where id <= 20")
        database.psql("delete from orders where id = 50")
        kafka.lose_answer("EndTxn")
        with worker(kafka.bootstrap, tmp_path, "debezium") as second:
            second.until(lambda: len(kafka.read(TOPIC)) >= 72)
            database.psql("insert into orders values (51, 'new')")
            second.until(lambda: len(kafka.read(TOPIC)) >= 73)

    changes = [(json.loads(each.key or "")["id"], json.loads(each.value or "null")) for each in kafka.read(TOPIC)]
    kinds = Counter("tombstone" if change is None else change["op"] for _, change in changes)
    assert kinds == {"r": 50, "u": 20, "d": 1, "tombstone": 1, "c": 1}
    table = {key: change["after"] if change else None for key, change in changes}
    states = {key: row and row["state"] for key, row in table.items()}
    assert states == {number: "paid" if number <= 20 else "new" for number in range(1, 52)} | {50: None}
