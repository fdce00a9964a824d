"""Makes the tables that the checks query, as temporary views of a Spark session.

`batches`, `records` (on request), `partitions`, `epochs`, `indexes` and `state_*` come from the data directory, `calls`
from the journal; the others are made from them by the queries in `views/`. Every table of the logs has the column
`directory`: if the data directory contains several brokers' directories, each is read independently.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from pipeline.answers.judge import answer_tables
from pipeline.audits import journal
from pipeline.audits.broker_files import TABLES, BrokerFiles
from pipeline.audits.coordinator_logs import StateTables, older_metadata
from pipeline.audits.history import FOUND, ORDERED
from pipeline.audits.identities import IDENTIFIED, NAMED_TOPICS, PROCESSORS, Identity, identified
from pipeline.audits.identities import VIEWS as IDENTITY_VIEWS
from pipeline.audits.indexes import index_table
from pipeline.audits.logs import log_table
from pipeline.audits.partition_files import COMPACTED_TOPICS, PARTITION_FILES, partition_rows
from pipeline.audits.registry import LOG_VIEWS, PARTITION_VIEWS, view
from pipeline.audits.sidecar_files import PartitionFiles, Tree
from pipeline.audits.spark_engine import SparkEngine
from pipeline.audits.table_cache import TableCache
from pipeline.journal import find_files
from pipeline.schemas import STATE, ddl

KEPT: Final = (
    "partitions", "indexes", "transactions", "coordinator", "committed", "decisions", "share_states", "group_states",
)  # fmt: skip
"""Tables that are computed immediately (`TableCache.kept`)."""

_KEYS: Final = "directory string, topic string, partition int, offset bigint, is_transactional boolean, key_hash bigint"
_NOW: Final = "CREATE OR REPLACE TEMPORARY FUNCTION now_ms() RETURNS BIGINT RETURN unix_millis(current_timestamp())"


class Tables:
    """The tables of one data directory. `register` makes them, `forget` releases their memory."""

    def __init__(self, spark: SparkSession, path: str, journal_path: str | None = None) -> None:
        """Open the data. Raises FileNotFoundError: no such directory, no partition in it, or no such journal."""
        self.spark = spark
        self.engine = SparkEngine(spark)
        self.path, self.journal_path = path, journal_path
        if journal_path is not None:
            find_files(journal_path)
        self.directories = Tree(path).directories()
        self.files: list[PartitionFiles] = [each for one in self.directories for each in Tree(one).partitions()]
        if not self.files:
            raise FileNotFoundError(f"{path} holds no partition, such as a folder orders-0: is it a data directory?")
        self._cache = TableCache(spark)

    def register(
        self,
        *,
        records: bool = False,
        identity: Identity | None = None,
        log_views: Sequence[str] = LOG_VIEWS,
        journal_views: Sequence[str] = journal.VIEWS,
    ) -> None:
        """Make the views of the logs and of the journal, all or those named, which must be in order.

        Reads in the same order as `DuckTables`, unless Spark reads lazily.
        """
        spark = self.spark
        spark.sql(_NOW)
        if self.journal_path is not None:
            journal.read_wire(spark, self._cache, self.journal_path)
            self._answers(self.journal_path if journal_views is journal.VIEWS else None)
        self._view("indexes", index_table(spark, self.files))
        self._look_beside()
        states = StateTables(self._cache, self.directories)
        states.read(of_metadata=False)
        self._view("history", self._history())
        states.read(of_metadata=True)
        self._state(states)
        self._view("ordered", spark.table("history").select(*ORDERED))
        self._view("batches", spark.table("history").select(*FOUND))
        if records:
            self._view("records", self._records())
        self._partitions()
        if records:
            self._view("compacted_keys", self._compacted_keys())
        for name in log_views:
            self._view(name, spark.sql(view(name)))
        if identity is not None:
            self._identities(identity)
        if self.journal_path is not None:
            journal.make_views(spark, self._cache, journal_views)

    def add(self, schemas: Mapping[str, pa.Schema], rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
        """Make small tables by name."""
        for name, schema in schemas.items():
            self._rows(rows[name], schema).createOrReplaceTempView(name)

    def add_views(self, names: Sequence[str]) -> None:
        """Make views by name."""
        for name in names:
            self._view(name, self.spark.sql(view(name)))

    def forget(self) -> None:
        """Release everything."""
        self._cache.forget()

    def _view(self, name: str, frame: DataFrame) -> None:
        (self._cache.kept(name, frame) if name in KEPT else frame).createOrReplaceTempView(name)

    def _each(self, source: str, **options: str) -> DataFrame:
        """Read a data source from every directory, with the column `directory` first."""
        frames = [
            self.spark.read.format(source).options(**options).load(directory).withColumn("directory", F.lit(directory))
            for directory in self.directories
        ]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole

    def _history(self) -> DataFrame:
        if self._cache.folder is not None:
            return log_table(self.spark, self.directories, self._cache.folder / "history")
        return self._cache.cached(log_table(self.spark, self.directories))

    def _records(self) -> DataFrame:
        columns = "timestamp_ms,batch_base_offset,segment,position,damage"
        return self._each("kafka_segments", mode="report", values="false", columns=columns)

    def _state(self, states: StateTables) -> None:
        """Return each kind of coordinator record without duplicates from replicas; metadata includes a snapshot's."""
        for kind, found in states.tables().items():
            if kind == "metadata" and (snapshot := older_metadata(self.files)):
                older = self._rows(snapshot, STATE[kind])
                found = found.where(F.col("offset") > snapshot[0]["offset"]).unionByName(older)  # noqa: PLW2901
            found.createOrReplaceTempView(f"state_{kind}")

    def _partitions(self) -> None:
        self._rows(partition_rows(self.files), PARTITION_FILES).createOrReplaceTempView("partition_files")
        for name in PARTITION_VIEWS:
            self._view(name, self.spark.sql(view(name)))

    def _compacted_keys(self) -> DataFrame:
        """Return offset and key hash of every record in the compacted topics except the internal ones."""
        wanted = self.spark.sql(COMPACTED_TOPICS)
        topics = wanted.toArrow().column("topic").to_pylist()
        if not topics:
            return self.spark.createDataFrame([], _KEYS)
        options = {"topics": ",".join(topics), "mode": "skip", "columns": "is_transactional"}
        hashed = "if(key IS NULL, NULL, xxhash64(key)) AS key_hash"
        found = self._each("kafka_segments", **options)
        return found.selectExpr("directory", "topic", "partition", "offset", "is_transactional", hashed)

    def _identities(self, identity: Identity) -> None:
        """Return the records by identity, read in this process."""
        found = pa.Table.from_batches(identified(self.path, identity), IDENTIFIED)
        self._view("identified", self.spark.createDataFrame(found, ddl(IDENTIFIED)))
        self._rows(identity.named_topics, NAMED_TOPICS).createOrReplaceTempView("named_topics")
        self._rows([{"group_id": each} for each in identity.groups], PROCESSORS).createOrReplaceTempView("processors")
        for name in IDENTITY_VIEWS:
            self._view(name, self.spark.sql(view(name)))

    def _answers(self, path: str | None) -> None:
        """Return the faults in responses; this process reads all lines except Produce and Fetch."""
        for name, rows in answer_tables(path).items() if path is not None else ():
            self.spark.createDataFrame(rows, ddl(rows.schema)).createOrReplaceTempView(name)

    def _look_beside(self) -> None:
        """Make views of the small files of all directories."""
        found = BrokerFiles()
        for directory in self.directories:
            found.look(Tree(directory))
        for name, schema in TABLES.items():
            self._rows(getattr(found, name), schema).createOrReplaceTempView(name)

    def _rows(self, rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> DataFrame:
        """Return a small table whose size the planner knows."""
        return self.spark.createDataFrame(pa.Table.from_pylist(rows, schema), ddl(schema))
