"""The tables that the checks ask, as temporary views of a Spark session.

`batches`, `records` (if asked for), `partitions`, `epochs`, `indexes` and `state_*` come from the data directory,
`calls` from the journal; the others are made of them by the queries in `views/`. All of a log's tables have the column
`directory`: where the data directory is the folder of several brokers', each one is looked at for itself.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from pipeline.audits import journal
from pipeline.audits.beside import EVERYTHING, PartitionFiles, Tree
from pipeline.audits.history import FOUND, ORDERED
from pipeline.audits.indexes import index_table
from pipeline.audits.logs import log_table
from pipeline.audits.registry import view
from pipeline.audits.room import Room
from pipeline.schemas import STATE, ddl

KEPT: Final = ("partitions", "indexes", "transactions", "coordinator", "committed")
"""Tables that are computed at once (`Room.kept`)."""
LOG_VIEWS: Final = ("produced", "transactions", "coordinator", "committed")

_FILES: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),
        pa.field("log_start", pa.int64()),
        pa.field("high_watermark", pa.int64()),
        pa.field("cleaner_offset", pa.int64()),
        pa.field("last_segment_base", pa.int64()),
    ]
)
_EPOCHS: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("epoch", pa.int32()),
        pa.field("start_offset", pa.int64()),
    ]
)
_NOW: Final = "CREATE OR REPLACE TEMPORARY FUNCTION now_ms() RETURNS BIGINT RETURN unix_millis(current_timestamp())"


class Tables:
    """The tables of one data directory. Made by `register`; `forget` gives memory back."""

    def __init__(self, spark: SparkSession, path: str, journal_path: str | None = None) -> None:
        """Raises FileNotFoundError: there is no such directory, or no partition in it."""
        self.spark = spark
        self.journal_path = journal_path
        if journal_path is not None:
            Tree(journal_path)
        self.directories = Tree(path).directories()
        self.files: list[PartitionFiles] = [each for one in self.directories for each in Tree(one).partitions()]
        if not self.files:
            raise FileNotFoundError(f"{path} holds no partition, such as a folder orders-0: is it a data directory?")
        self._room = Room(spark)

    def register(
        self,
        *,
        records: bool = False,
        log_views: Sequence[str] = LOG_VIEWS,
        journal_views: Sequence[str] = journal.VIEWS,
    ) -> None:
        """Make the views of the logs and of the journal: all of them, or those named, which have to be in order."""
        spark = self.spark
        spark.sql(_NOW)
        self._view("history", self._history())
        self._view("ordered", spark.table("history").select(*ORDERED))
        self._view("batches", spark.table("history").select(*FOUND))
        if records:
            self._view("records", self._records())
        for kind in ("offsets", "transactions", "metadata"):
            self._view(f"state_{kind}", self._state(kind))
        self._view("partitions", self._partitions())
        self._view("epochs", self._epochs())
        self._view("indexes", index_table(spark, self.files))
        for name in log_views:
            self._view(name, spark.sql(view(name)))
        if self.journal_path is not None:
            journal.register(spark, self._room, self.journal_path, journal_views)

    def forget(self) -> None:
        """Drop what was kept."""
        self._room.forget()

    def _view(self, name: str, frame: DataFrame) -> None:
        (self._room.kept(name, frame) if name in KEPT else frame).createOrReplaceTempView(name)

    def _each(self, source: str, **options: str) -> DataFrame:
        """A data source read from every directory, with the column `directory` in front."""
        frames = [
            self.spark.read.format(source).options(**options).load(directory).withColumn("directory", F.lit(directory))
            for directory in self.directories
        ]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole

    def _history(self) -> DataFrame:
        if self._room.folder is not None:
            return log_table(self.spark, self.directories, self._room.folder / "history")
        return self._room.cached(log_table(self.spark, self.directories))

    def _records(self) -> DataFrame:
        columns = "timestamp_ms,batch_base_offset,damage"
        return self._each("kafka_segments", mode="report", values="false", columns=columns)

    def _state(self, kind: str) -> DataFrame:
        """The coordinators' records, each once, whichever replica they were read from."""
        topic = {"offsets": "__consumer_offsets", "transactions": "__transaction_state"}.get(kind, "__cluster_metadata")
        if not any(each.topic == topic for each in self.files):
            return self.spark.createDataFrame([], ddl(STATE[kind]))
        found = self._each("kafka_state", kind=kind, mode="skip").drop("directory").distinct()
        return self._room.kept(f"state_{kind}", found)

    def _partitions(self) -> DataFrame:
        rows = [
            (
                each.directory, each.topic, each.partition, each.topic_id,
                each.first_segment_base if each.log_start is None else each.log_start,
                each.high_watermark, each.cleaned_to, each.last_segment_base,
            )
            for each in self.files
        ]  # fmt: skip
        self._rows(rows, _FILES).createOrReplaceTempView("partition_files")
        return self.spark.sql(f"""
          SELECT directory, topic, partition, topic_id, log_start, high_watermark, last_segment_base,
                 coalesce(is_compacted, topic IN ('__consumer_offsets', '__transaction_state')) AS is_compacted,
                 CASE WHEN topic = '__cluster_metadata' THEN {EVERYTHING}
                      WHEN cleaner_offset IS NOT NULL THEN cleaner_offset
                      WHEN coalesce(is_compacted, topic LIKE '\\_\\_%') THEN {EVERYTHING} ELSE 0 END AS cleaned_to,
                 coalesce(log_end, last_segment_base) AS log_end, coalesce(is_damaged, false) AS is_damaged
          FROM partition_files
          LEFT JOIN (SELECT directory, topic, partition, greatest(max(last_offset) + 1, max(segment_base)) AS log_end,
                            max(damage_kind <> 'torn') AS is_damaged
                     FROM batches GROUP BY ALL) ends USING (directory, topic, partition)
          LEFT JOIN (SELECT get_json_object(record, '$.resource_name') AS topic,
                            max_by(get_json_object(record, '$.value'), offset) LIKE '%compact%' AS is_compacted
                     FROM state_metadata
                     WHERE type = 'ConfigRecord' AND get_json_object(record, '$.name') = 'cleanup.policy'
                     GROUP BY ALL) policies USING (topic)
        """)  # noqa: S608 - a number of ours

    def _epochs(self) -> DataFrame:
        rows = [
            (each.directory, each.topic, each.partition, epoch, start)
            for each in self.files
            for epoch, start in each.epochs
        ]
        return self._rows(rows, _EPOCHS)

    def _rows(self, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
        """A small table that the planner knows the size of."""
        made = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        return self.spark.createDataFrame(made, ddl(schema))
