"""Makes the audits' tables on DuckDB: files are read by this process, queries are the same as on Spark."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from pipeline.answers.judge import answer_tables
from pipeline.audits import broker_files, journal
from pipeline.audits.coordinator_logs import each_once, logs_of, older_metadata, read_state_logs
from pipeline.audits.history import FOUND, HISTORY, ORDERED
from pipeline.audits.identities import IDENTIFIED, NAMED_TOPICS, Identity, identified
from pipeline.audits.identities import VIEWS as IDENTITY_VIEWS
from pipeline.audits.logs import read_history
from pipeline.audits.partition_files import COMPACTED_TOPICS, PARTITION_FILES, partition_rows
from pipeline.audits.registry import LOG_VIEWS, PARTITION_VIEWS, view
from pipeline.audits.sidecar_files import INDEXES, PartitionFiles, Tree, index_entries
from pipeline.conformance import tables
from pipeline.duck.engine import DuckEngine
from pipeline.query import Mode, pick
from pipeline.reading import read_journal, read_segments
from pipeline.replicas import find_partitions
from pipeline.schemas import BATCHES, EXTRA, JOURNAL, KAFKA, STATE

_RECORDS: Final = ("topic", "partition", "offset", "timestamp", "timestampType", "timestamp_ms", "batch_base_offset",
                   "segment", "position", "damage")  # fmt: skip
COMPACTED_KEYS: Final = """
  SELECT directory, topic, partition, offset, is_transactional, if(key IS NULL, NULL, xxhash64(key)) AS key_hash
  FROM read_keys
"""
_AVAILABLE: Final = pa.schema([*KAFKA, *EXTRA])
_KEYS: Final = ("topic", "partition", "offset", "is_transactional", "key")


class DuckTables:
    """The tables of one data directory and a journal. `register` makes them, `forget` releases their memory."""

    def __init__(self, path: str, journal_path: str | None = None) -> None:
        """Open the data. Raises FileNotFoundError: no such directory, or no partition in it."""
        self.engine = DuckEngine()
        self.path, self.journal_path = path, journal_path
        self.directories = Tree(path).directories()
        self.files: list[PartitionFiles] = [each for one in self.directories for each in Tree(one).partitions()]
        if not self.files:
            raise FileNotFoundError(f"{path} holds no partition, such as a folder orders-0: is it a data directory?")

    def register(self, *, records: bool = False, identity: Identity | None = None) -> None:
        """Make the tables of the logs and of the journal, and of records by identity.

        What brokers and coordinators write because of a log is read before the log; otherwise, in a directory in use,
        it would be ahead of the log.
        """
        engine = self.engine
        if self.journal_path is not None:
            read_wire(engine, self.journal_path)
            for name, rows in answer_tables(self.journal_path).items():
                engine.table(name, rows)
        engine.table("indexes", _table(INDEXES, self._indexes()))
        self._logs()
        if records:
            self._records()
        for name in LOG_VIEWS:
            engine.view(name, view(name))
        if identity is not None:
            engine.table("identified", _table(IDENTIFIED, identified(self.path, identity)))
            engine.table("named_topics", pa.Table.from_pylist(identity.named_topics, NAMED_TOPICS))
            engine.table("processors", pa.table({"group_id": pa.array(identity.groups, pa.string())}))
            for name in IDENTITY_VIEWS:
                engine.view(name, view(name))
        if self.journal_path is not None:
            journal_views(engine)

    def _logs(self) -> None:
        """Read the small files, the coordinators' records, batches, metadata and partitions, in this order."""
        engine = self.engine
        self._small_files()
        decided = self._coordinators()
        engine.table("history", _table(HISTORY, self._history()))
        engine.columns("ordered", "history", ORDERED)
        engine.columns("batches", "history", FOUND)
        self._states(decided)
        engine.table("partition_files", pa.Table.from_pylist(partition_rows(self.files), PARTITION_FILES))
        for name in PARTITION_VIEWS:
            engine.view(name, view(name))

    def add(self, schemas: Mapping[str, pa.Schema], rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
        """Make small tables by name."""
        for name, schema in schemas.items():
            self.engine.table(name, pa.Table.from_pylist(list(rows[name]), schema))

    def add_views(self, names: Sequence[str]) -> None:
        """Make views by name."""
        for name in names:
            self.engine.view(name, view(name))

    def forget(self) -> None:
        """Drop the tables."""
        self.engine.close()

    def _history(self) -> Iterator[pa.RecordBatch]:
        for directory in self.directories:
            for partition in find_partitions(directory):
                yield from read_history([(directory, partition)])

    def _small_files(self) -> None:
        found = broker_files.BrokerFiles()
        for directory in self.directories:
            found.look(Tree(directory))
        for name, schema in broker_files.TABLES.items():
            self.engine.table(name, pa.Table.from_pylist(getattr(found, name), schema))

    def _coordinators(self) -> list[tuple[str, pa.RecordBatch]]:
        """Yield kind and rows of the coordinators' records."""
        return list(read_state_logs(logs_of(self.directories, of_metadata=False)))

    def _states(self, decided: Iterable[tuple[str, pa.RecordBatch]]) -> None:
        """Read the metadata, and make the tables of metadata and coordinators' records."""
        read: dict[str, list[pa.RecordBatch]] = {kind: [] for kind in STATE}
        for kind, rows in (*decided, *read_state_logs(logs_of(self.directories, of_metadata=True))):
            read[kind].append(rows)
        for kind, schema in STATE.items():
            rows = each_once(_table(schema, read[kind]))
            if kind == "metadata" and (older := older_metadata(self.files)):
                end = max(row["offset"] for row in older)
                newer = [row for row in rows.to_pylist() if row["offset"] > end]
                rows = pa.Table.from_pylist(older + newer, schema)
            self.engine.table(f"state_{kind}", rows)

    def _indexes(self) -> Iterator[pa.RecordBatch]:
        for each in self.files:
            for file in each.index_files:
                yield index_entries(each.directory, file)

    def _records(self) -> None:
        self.engine.table("records", self._each(_RECORDS, None, "report"))
        compacted = self.engine.rows(COMPACTED_TOPICS).column("topic").to_pylist()
        self.engine.table("read_keys", self._each(_KEYS, compacted, "skip"))
        self.engine.view("compacted_keys", COMPACTED_KEYS)

    def _each(self, columns: Sequence[str], topics: Sequence[str] | None, mode: Mode) -> pa.Table:
        """Yield the records of every directory, with the column `directory`."""
        schema = pa.schema([*pick(_AVAILABLE, columns), pa.field("directory", pa.string())])
        found = []
        for directory in self.directories if topics is None or topics else ():
            for rows in read_segments(directory, columns=columns, topics=topics, mode=mode):
                named = pa.repeat(pa.scalar(directory), len(rows))
                found.append(pa.RecordBatch.from_arrays([*rows.select(columns).columns, named], schema=schema))
        return _table(schema, found)


class NoLogs(DuckTables):
    """Tables without a data directory: added tables, and empty tables of the logs for the report's counts."""

    def __init__(self) -> None:
        self.engine = DuckEngine()
        self.files = []
        self.engine.table("batches", BATCHES.empty_table())
        self.engine.table("partitions", pa.table({"topic": pa.array([], pa.string())}))

    def register(self, **_: object) -> None:
        """Do nothing: there are no logs."""


def register_journal(engine: DuckEngine, path: str, names: Sequence[str] = journal.VIEWS) -> None:
    """Make the table and the views of a journal, all or those named. Requires the table `partitions`."""
    read_wire(engine, path)
    journal_views(engine, names)


def read_wire(engine: DuckEngine, path: str) -> None:
    """Make the table of a journal's lines."""
    engine.table("wire", _table(JOURNAL, read_journal(path)))


def journal_views(engine: DuckEngine, names: Sequence[str] = journal.VIEWS) -> None:
    """Make the views of a journal, all or those named. Requires the tables `partitions` and `wire`."""
    engine.function("owned_partitions", _owned, ["VARCHAR"], "STRUCT(topic VARCHAR, partition INTEGER)[]")
    for name in names:
        engine.view(name, view(name))


def _owned(shown: str | None) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": partition} for topic, partition in journal.owned_partitions(shown)]


def _table(schema: pa.Schema, rows: Iterable[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(rows, schema)


def register_conformance(engine: DuckEngine, path: str) -> None:
    """Make the tables of the conformance report."""
    engine.table("partitions", pa.table({"topic_id": pa.array([], pa.string()), "topic": pa.array([], pa.string())}))
    register_journal(engine, path, tables.WIRE_VIEWS)
    for name in tables.VIEWS:
        engine.view(name, tables.views()[name])
