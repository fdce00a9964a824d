"""Makes the tables of the audits in DuckDB, from files that this process or Spark decodes (`pipeline.duck.reader`)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import pyarrow as pa

from pipeline.answers.judge import answer_tables
from pipeline.audits import broker_files, journal, logs
from pipeline.audits.coordinator_logs import older_metadata, read_state_log, state_logs
from pipeline.audits.history import HISTORY, ORDERED, READ_COLUMNS
from pipeline.audits.identities import IDENTIFIED, NAMED_TOPICS, Identity, identified
from pipeline.audits.identities import VIEWS as IDENTITY_VIEWS
from pipeline.audits.partition_files import COMPACTED_TOPICS, PARTITION_FILES, partition_rows
from pipeline.audits.registry import LOG_VIEWS, PARTITION_VIEWS, view
from pipeline.audits.sidecar_files import INDEXES, PartitionFiles, Tree
from pipeline.conformance import tables
from pipeline.duck.engine import DuckEngine
from pipeline.duck.reader import LocalReader, Reader
from pipeline.schemas import BATCHES, JOURNAL, STATE

COORDINATORS, METADATA = "coordinators_", "metadata_"
"""Prefixes of the tables of all replicas' records."""
_ONCE: Final = "SELECT DISTINCT * FROM ({})"
_METADATA: Final = """
  SELECT * FROM older_metadata
  UNION ALL
  SELECT DISTINCT * FROM ({}) WHERE offset > coalesce((SELECT max(offset) FROM older_metadata), -1)
"""


class DuckTables:
    """The tables of one data directory and a journal. `register` makes them, `forget` releases their memory."""

    def __init__(self, path: str, journal_path: str | None = None, reader: Reader | None = None) -> None:
        """Open the data; without a `reader` this process decodes it.

        Raises FileNotFoundError: no such directory, no partition in it, or no such journal.
        """
        self.engine = DuckEngine()
        self._reader = LocalReader() if reader is None else reader
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
            read_wire(engine, self.journal_path, self._reader)
            for name, rows in answer_tables(self.journal_path).items():
                engine.table(name, rows)
        self._reader.read(engine, {"indexes": INDEXES}, logs.read_index, logs.indexes_of(self.files))
        self._read_logs()
        if records:
            self._records()
        self._log_views()
        if identity is not None:
            engine.table("identified", pa.Table.from_batches(identified(self.path, identity), IDENTIFIED))
            engine.table("named_topics", pa.Table.from_pylist(identity.named_topics, NAMED_TOPICS))
            engine.table("processors", pa.table({"group_id": pa.array(identity.groups, pa.string())}))
            for name in IDENTITY_VIEWS:
                engine.view(name, view(name))
        if self.journal_path is not None:
            journal_views(engine)

    def _read_logs(self) -> None:
        """Read the small files, the coordinators' records, batches, metadata and partitions, in this order."""
        engine = self.engine
        self._small_files()
        self._read_states(COORDINATORS, of_metadata=False)
        self._read_history()
        engine.columns("ordered", "history", ORDERED)
        engine.columns("batches", "history", READ_COLUMNS)
        self._read_states(METADATA, of_metadata=True)
        self._states()
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
        self._reader.close()

    def _log_views(self) -> None:
        for name in LOG_VIEWS:
            self.engine.view(name, view(name), kept=name != "produced")  # which is the larger part of another table

    def _small_files(self) -> None:
        small_files = broker_files.BrokerFiles()
        for directory in self.directories:
            small_files.look(Tree(directory))
        for name, schema in broker_files.TABLES.items():
            self.engine.table(name, pa.Table.from_pylist(getattr(small_files, name), schema))

    def _read_history(self) -> None:
        logs_there = logs.whole(logs.logs_of(self.directories))
        self._reader.read(self.engine, {"history": HISTORY}, logs.read_history, logs_there)

    def _read_states(self, prefix: str, *, of_metadata: bool) -> None:
        """Read the coordinators' records, or the metadata, of all replicas."""
        tables = {prefix + kind: schema for kind, schema in STATE.items()}
        pieces = logs.whole(state_logs(self.directories, of_metadata=of_metadata))
        self._reader.read(self.engine, tables, partial(read_state_log, prefix=prefix), pieces)

    def _states(self) -> None:
        """Make the tables of the coordinators' records and the metadata, without duplicates from other replicas."""
        self.engine.table("older_metadata", pa.Table.from_pylist(older_metadata(self.files), STATE["metadata"]))
        for kind in STATE:
            both = f"SELECT * FROM {COORDINATORS}{kind} UNION ALL SELECT * FROM {METADATA}{kind}"  # noqa: S608 - our names
            self.engine.view(f"state_{kind}", (_METADATA if kind == "metadata" else _ONCE).format(both))

    def _records(self) -> None:
        there = logs.logs_of(self.directories)
        self._reader.read(self.engine, {"decoded": logs.DECODED}, logs.read_decoded, logs.records_of(there))
        compacted = self.engine.rows(COMPACTED_TOPICS).column("topic").to_pylist()
        pieces = logs.records_of(each for each in there if each[1].topic in compacted)
        self._reader.read(self.engine, {"compacted_keys": logs.COMPACTED_KEYS}, logs.read_keys, pieces)


class NoLogs(DuckTables):
    """Tables without a data directory: added tables, and empty tables of the logs for the report's counts."""

    def __init__(self) -> None:
        self.engine = DuckEngine()
        self._reader = LocalReader()
        self.files = []
        self.engine.table("batches", BATCHES.empty_table())
        self.engine.table("partitions", pa.table({"topic": pa.array([], pa.string())}))

    def register(self, **_: object) -> None:
        """Do nothing: there are no logs."""


def register_journal(
    engine: DuckEngine, path: str, names: Sequence[str] = journal.VIEWS, reader: Reader | None = None
) -> None:
    """Make the table and the views of a journal, all or those named. Requires the table `partitions`."""
    read_wire(engine, path, LocalReader() if reader is None else reader)
    journal_views(engine, names)


def read_wire(engine: DuckEngine, path: str, reader: Reader) -> None:
    """Make the table of a journal's lines."""
    reader.read(engine, {"wire": JOURNAL}, logs.read_wire, logs.lines_of(path))


def journal_views(engine: DuckEngine, names: Sequence[str] = journal.VIEWS) -> None:
    """Make the views of a journal, all or those named. Requires the tables `partitions` and `wire`."""
    engine.function("owned_partitions", _owned, ["VARCHAR"], "STRUCT(topic VARCHAR, partition INTEGER)[]")
    for name in names:
        engine.view(name, view(name))


def _owned(shown: str | None) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": partition} for topic, partition in journal.owned_partitions(shown)]


def register_conformance(engine: DuckEngine, path: str, reader: Reader | None = None) -> None:
    """Make the tables of the conformance report."""
    engine.table("partitions", pa.table({"topic_id": pa.array([], pa.string()), "topic": pa.array([], pa.string())}))
    register_journal(engine, path, tables.WIRE_VIEWS, reader)
    for name in tables.VIEWS:
        engine.view(name, tables.views()[name])
