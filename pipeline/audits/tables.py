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
from pipeline.audits.indexes import index_table
from pipeline.audits.registry import view
from pipeline.schemas import BATCHES, STATE, ddl

CACHED: Final = ("ordered", "produced")
"""Large tables that many checks ask: kept in memory and on disk, in columns. `batches` is a part of `ordered`."""
SETTLED: Final = ("partitions", "transactions", "coordinator", "committed", *(f"state_{kind}" for kind in STATE))
"""Smaller ones, computed at once: what is asked of them does not plan again how they are made."""
LOG_VIEWS: Final = ("produced", "transactions", "coordinator", "committed")
NEEDED_OF_BATCHES: Final = tuple(name for name in BATCHES.names if name != "base_timestamp_ms")

_NOW: Final = "CREATE OR REPLACE TEMPORARY FUNCTION now_ms() RETURNS BIGINT RETURN unix_millis(current_timestamp())"
_DAMAGE_KIND: Final = """
  CASE WHEN damage IS NULL THEN NULL
       WHEN damage = 'checksum mismatch' THEN 'crc'
       WHEN damage = 'more records than offsets' OR damage LIKE '%records%count%' THEN 'count'
       WHEN damage LIKE 'offsets % out of order%' THEN 'offsets'
       WHEN damage LIKE 'leader epoch % out of order%' THEN 'epoch'
       WHEN damage LIKE '% bytes are there' OR damage LIKE '% bytes of zeros'
         OR damage LIKE '%fewer than a header' THEN 'torn'
       ELSE 'damaged' END
"""
"""What the decoder's reasons mean to the checks."""
_STATED: Final = r"^offsets (-?[0-9]+)-(-?[0-9]+), out of order"


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
        found = self._batches()
        self._view("found_batches", found)
        self._view("ordered", spark.sql(view("ordered")))
        self._view("batches", spark.table("ordered").select(*found.columns))
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
            journal.register(spark, self.journal_path, journal_views)

    def forget(self) -> None:
        """Drop what was kept."""
        for name in CACHED:
            if self.spark.catalog.tableExists(name):
                self.spark.catalog.uncacheTable(name)

    def _view(self, name: str, frame: DataFrame) -> None:
        settled = frame.localCheckpoint() if name in SETTLED else frame
        settled.createOrReplaceTempView(name)
        if name in CACHED:
            self.spark.catalog.cacheTable(name)

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

    def _batches(self) -> DataFrame:
        found = self._each("kafka_batches", mode="report").select("directory", *NEEDED_OF_BATCHES)
        base = F.expr("try_cast(substring(segment, -24, 20) AS BIGINT)")  # the digits before `.log`
        parts = {"stated_offset": 1, "stated_last": 2}
        stated = {name: F.regexp_extract("damage", _STATED, at) for name, at in parts.items()}
        return found.withColumns(
            {"segment_base": base, "damage_kind": F.expr(_DAMAGE_KIND)}
            | {name: F.when(text != "", text.cast("bigint")) for name, text in stated.items()}
        )

    def _records(self) -> DataFrame:
        columns = "timestamp_ms,batch_base_offset,damage"
        return self._each("kafka_segments", mode="report", values="false", columns=columns)

    def _state(self, kind: str) -> DataFrame:
        """The coordinators' records, each once, whichever replica they were read from."""
        topic = {"offsets": "__consumer_offsets", "transactions": "__transaction_state"}.get(kind, "__cluster_metadata")
        if not any(each.topic == topic for each in self.files):
            return self.spark.createDataFrame([], ddl(STATE[kind]))
        return self._each("kafka_state", kind=kind, mode="skip").drop("directory").distinct()

    def _partitions(self) -> DataFrame:
        rows = [
            (
                each.directory, each.topic, each.partition, each.topic_id,
                each.first_segment_base if each.log_start is None else each.log_start,
                each.high_watermark, each.cleaned_to, each.last_segment_base,
            )
            for each in self.files
        ]  # fmt: skip
        columns = (
            "directory string, topic string, partition int, topic_id string, log_start bigint, high_watermark bigint, "
            "cleaner_offset bigint, last_segment_base bigint"
        )
        self._rows(rows, columns).createOrReplaceTempView("partition_files")
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
        return self._rows(rows, "directory string, topic string, partition int, epoch int, start_offset bigint")

    def _rows(self, rows: Sequence[tuple[object, ...]], columns: str) -> DataFrame:
        return self.spark.createDataFrame(list(rows), columns)


def arrow(frame: DataFrame) -> pa.Table:
    """A frame's rows, all of them, in this process: for small answers."""
    return frame.toArrow()
