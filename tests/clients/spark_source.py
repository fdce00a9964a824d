"""Plays the cases of Spark's own Kafka source and sink against a cluster, in one session; prints what came of each.

    python spark_source.py BOOTSTRAP JARS FOLDER

Topics and records were made before (`test_spark.py`). Each case is a function; its answer, or its error, is JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

QUICK = {"kafka.fetch.max.wait.ms": "10", "kafkaConsumer.pollTimeoutMs": "4000", "fetchOffset.numRetries": "1"}


class Cases:
    """What is tried."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        self.spark, self.bootstrap, self.folder = spark, bootstrap, folder

    def frame(self, topic: str, **options: str) -> DataFrame:
        """A batch read."""
        reader_options = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": topic, **QUICK, **options}
        if "subscribePattern" in reader_options:
            del reader_options["subscribe"]
        return self.spark.read.format("kafka").options(**reader_options).load()

    def values(self, topic: str, **options: str) -> list[str]:
        """Sorted values of a batch read."""
        return sorted(bytes(row.value).decode() for row in self.frame(topic, **options).select("value").collect())

    def all(self) -> Any:
        """All records of all partitions, in the columns that matter most."""
        rows = self.frame("plain", includeHeaders="true").orderBy("partition", "offset").collect()
        headers = [
            None if row.headers is None else [[h.key, bytes(h.value).decode()] for h in row.headers] for row in rows
        ]
        return {
            "schema": self.frame("plain", includeHeaders="true").schema.simpleString(),
            "rows": [[row.partition, row.offset, bytes(row.value).decode(), row.timestampType] for row in rows],
            "headers": headers,
        }

    def more_partitions(self) -> Any:
        """Ranges are cut by offsets that the driver asks for."""
        frame = self.frame("plain", minPartitions="8")
        return [frame.rdd.getNumPartitions(), frame.count()]

    def pattern(self) -> Any:
        """Topics by a pattern; internal ones stay away."""
        frame = self.frame("", subscribePattern="plain|__.*")
        return sorted(row.topic for row in frame.select("topic").distinct().collect())

    def committed(self) -> Any:
        """Across aborted records and markers, which end the range too."""
        return self.values("transactions", **{"kafka.isolation.level": "read_committed"})

    def uncommitted(self) -> Any:
        """By default everything, aborted and open."""
        return self.values("transactions")

    def deleted(self) -> Any:
        """Records that were deleted: earliest has moved."""
        return [row.offset for row in self.frame("deleted").orderBy("offset").collect()]

    def lost(self) -> Any:
        """An offset that is gone fails the query."""
        return self.values("deleted", startingOffsets='{"deleted": {"0": 0}}')

    def lost_and_tolerated(self) -> Any:
        """... unless that is tolerated."""
        start = '{"deleted": {"0": 0}}'
        return len(self.values("deleted", startingOffsets=start, failOnDataLoss="false"))

    def beyond(self) -> Any:
        """So does an end behind the log's."""
        return self.values("deleted", endingOffsets='{"deleted": {"0": 99}}')

    def by_time(self) -> Any:
        """From a time on."""
        return self.values("timed", startingTimestamp="1700000000005")

    def by_time_without_match(self) -> Any:
        """A time that no record has."""
        return self.values("timed", startingTimestamp="1800000000000")

    def by_time_or_latest(self) -> Any:
        """The same, where the end will do."""
        latest = {"startingOffsetsByTimestampStrategy": "latest"}
        return self.values("timed", startingTimestamp="1800000000000", **latest)

    def missing(self) -> Any:
        """A topic that does not exist is not made by who reads it."""
        return self.values("missing")

    def written(self) -> Any:
        """The sink: keys, values, headers, a chosen partition; its topic is made."""
        rows = "select 'k' key, string(id) value, array(struct('h' key, binary('x') value)) headers, 0 partition"
        frame = self.spark.sql(f"{rows} from range(20)")
        writer_options = {"kafka.bootstrap.servers": self.bootstrap, "topic": "written", "includeHeaders": "true"}
        frame.write.format("kafka").options(**writer_options).save()
        back = self.frame("written", includeHeaders="true").collect()
        return sorted([int(bytes(row.value)), row.headers[0].key] for row in back)

    def streamed(self, **options: str) -> Any:
        """A stream to its end, in steps, and on from its checkpoint."""
        steps: list[list[str]] = []
        checkpoint = self.folder / f"checkpoint{len(options)}"

        def note(batch: DataFrame, _: int) -> None:
            steps.append(sorted(bytes(row.value).decode() for row in batch.collect()))

        reader_options = {
            "kafka.bootstrap.servers": self.bootstrap,
            "subscribe": "plain",
            "startingOffsets": "earliest",
        }
        for _ in range(2):
            reader = self.spark.readStream.format("kafka").options(
                **reader_options, **QUICK, maxOffsetsPerTrigger="30", **options
            )
            writer = reader.load().writeStream.foreachBatch(note).option("checkpointLocation", str(checkpoint))
            if not writer.trigger(availableNow=True).start().awaitTermination(120):
                return "did not end"
        return steps

    def streamed_by_a_group(self) -> Any:
        """The old way to find offsets joins a group."""
        before = self.spark.conf.get("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "false")
        self.spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
        try:
            return self.streamed(groupIdPrefix="old")
        finally:
            self.spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", str(before))


def main(bootstrap: str, jars: str, folder: str) -> None:
    """Play all cases."""
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    cases = Cases(builder.getOrCreate(), bootstrap, Path(folder))
    results: dict[str, Any] = {}
    names = ["all", "more_partitions", "pattern", "committed", "uncommitted", "deleted", "lost", "lost_and_tolerated"]
    names += ["beyond", "by_time", "by_time_without_match", "by_time_or_latest", "missing", "written", "streamed"]
    for name in [*names, "streamed_by_a_group"]:
        try:
            results[name] = getattr(cases, name)()
        except Exception as error:  # noqa: BLE001 - one of Spark's, Java's or Py4J's
            results[name] = {"error": str(error)[:3000]}
    sys.stdout.write("\n" + json.dumps(results) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
