"""The data sources in a Spark session: batch, streams, filters, errors, and a user with packages of the same names."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from protocol.records.records import Record, build_batch
from tests.pipeline.logs import NOW_MS, chain, write_segment
from tests.pipeline.test_journal import line, write

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]


def values(frame: DataFrame) -> list[Any]:
    """The values of the first column, sorted."""
    return sorted(row[0] for row in frame.collect())


def test_records_have_the_columns_of_sparks_own_source(spark: SparkSession, tmp_path: Path) -> None:
    """With every value as it was sent; headers in their order, null without any."""
    headers = [("h", b"1"), ("h", None), ("", b"")]
    records = [Record(0, NOW_MS, None, b"v", headers), Record(1, NOW_MS + 1, b"", None)]
    write_segment(tmp_path, build_batch(records, codec=4, partition_leader_epoch=0))
    frame = spark.read.format("kafka_segments").option("includeHeaders", "true").load(str(tmp_path))
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    first, second = frame.orderBy("offset").collect()
    assert (first.key, first.value, first.timestamp.microsecond) == (None, b"v", 0)
    assert [(each.key, each.value) for each in first.headers] == headers
    assert (second.key, second.value, second.headers) == (b"", None, None)


def test_one_dataframe_answers_many_questions(spark: SparkSession, tmp_path: Path) -> None:
    """Spark 4.3 would answer the second with the filters of the first, if those were pushed down unasked."""
    for partition in range(3):
        write_segment(tmp_path, *chain(*[5] * 20), name=f"t-{partition}")
    frame = spark.read.format("kafka_segments").load(str(tmp_path))
    frame.createOrReplaceTempView("records")
    counts = ("offset >= 97", "true", "offset > 97 or partition = 0", "topic = 'other'", "offset < 2")
    queries = [f"(select count(*) from records where {each})" for each in counts]  # noqa: S608 - our own text
    assert spark.sql("select " + ", ".join(queries)).first() == (9, 300, 104, 0, 6)
    assert [frame.filter(each).count() for each in counts[:2]] == [9, 300]


def test_filters_reach_the_files_where_that_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    """Segments that they exclude are not opened: here they could not be read."""
    batches = chain(*[5] * 20)
    for index in range(4):
        write_segment(tmp_path, *batches[5 * index : 5 * index + 5], base=25 * index)
        if index != 2:
            path = tmp_path / "t-0" / f"{25 * index:020d}.log"
            path.write_bytes(b"x" * path.stat().st_size)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("kafka_segments").option("pushFilters", "true").load(str(tmp_path))
        condition = "partition in (0, 7) and offset >= 60 and offset < 63 and timestamp > '2023-11-14T22:13:20Z'"
        assert values(frame.filter(condition).select("offset")) == [60, 61, 62]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    bounded = spark.read.format("kafka_segments").option("startingOffsets", "60").option("endingOffsets", "63")
    assert values(bounded.load(str(tmp_path)).select("offset")) == [60, 61, 62]


def test_a_users_schema_chooses_the_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Spark prunes no columns of a Python source; a schema keeps the others from being decoded."""
    write_segment(tmp_path, *chain(3))
    reader = spark.read.format("kafka_segments").schema("offset bigint, sequence int, segment string")
    assert reader.load(str(tmp_path)).orderBy("offset").first() == (0, -1, str(tmp_path / "t-0" / f"{0:020d}.log"))


def test_the_other_sources_are_there(spark: SparkSession, tmp_path: Path) -> None:
    """Batches, coordinators' records, journals."""
    write_segment(tmp_path, *chain(3, 4))
    write_segment(tmp_path, build_batch([Record(0, 0, b"\0\1\0\1g", None)]), name="__consumer_offsets-0")
    write(tmp_path / "journal", line(1), line(2, {"name": "t"}))
    batches = spark.read.format("kafka_batches").option("topics", "t").load(str(tmp_path))
    assert values(batches.select("record_count")) == [3, 4]
    state = spark.read.format("kafka_state").option("kind", "unknown").load(str(tmp_path))
    assert values(state.select("kind")) == [1]
    journal = spark.read.format("wire_journal").load(str(tmp_path / "journal"))
    names = journal.selectExpr("variant_get(parse_json(request), '$.name', 'string') name")
    assert values(names.filter("name is not null")) == ["t"]


def test_damage_is_reported_by_an_error_or_a_row(spark: SparkSession, tmp_path: Path) -> None:
    """A damaged batch raises an error, or becomes a row, with file, position and reason."""
    first, second = chain(3, 3)
    second[-1] ^= 1
    path = write_segment(tmp_path, first, second, chain(3, 3, 3)[2])
    with pytest.raises(PySparkException, match=f"{path}: byte {len(first)}: checksum mismatch"):
        spark.read.format("kafka_segments").load(str(tmp_path)).count()
    reported = spark.read.format("kafka_segments").option("mode", "report").load(str(tmp_path))
    assert values(reported.filter("damage is not null").select("damage")) == ["checksum mismatch"]
    assert values(reported.filter("damage is null").select("offset")) == [0, 1, 2, 6, 7, 8]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"incldeHeaders": "true"}, "did you mean includeHeaders"), ({"path": "nowhere"}, "there is nothing")],
)
def test_invalid_options_are_refused_in_one_sentence(
    spark: SparkSession, options: dict[str, str], message: str
) -> None:
    """At planning, not in a worker's stack trace."""
    with pytest.raises(PySparkException, match=message):
        spark.read.format("kafka_segments").options(**{"path": "x", **options}).load().count()


def follow(spark: SparkSession, folder: Path, **options: str) -> list[list[int]]:
    """The offsets of a stream, step by step, from its checkpoint to what is there now."""
    steps: list[list[int]] = []
    reader = spark.readStream.format("kafka_segments").options(**options)
    frame = reader.schema("topic string, partition int, offset bigint").load(str(folder))
    writer = frame.writeStream.foreachBatch(lambda batch, _: steps.append(values(batch.select("offset"))))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return steps


def test_a_stream_continues_at_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """In steps as large as they may be, up to the high watermark, and never twice."""
    write_segment(tmp_path, *chain(*[2] * 10))
    high_watermark = tmp_path / "replication-offset-checkpoint"
    high_watermark.write_text("0\n1\nt 0 10\n")
    assert follow(spark, tmp_path, maxOffsetsPerTrigger="4") == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    high_watermark.write_text("0\n1\nt 0 20\n")
    assert follow(spark, tmp_path) == [list(range(10, 20))]


def test_a_user_may_have_packages_of_the_same_names(tmp_path: Path) -> None:
    """In the driver and in workers, `pipeline` and `storage` stay the user's."""
    write_segment(tmp_path, *chain(3))
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import pipeline, storage\n"
        "from understudy.spark.sources import Reader\n"
        "reader = Reader('kafka_segments', {'path': sys.argv[2]}, ['offset'])\n"
        "read = [row for part in reader.partitions() for row in reader.read(part)]\n"
        "import pipeline as again, storage.inner\n"
        "assert again is pipeline and pipeline.MINE and storage.inner.MINE and 'protocol' not in sys.modules\n"
        "print([batch.to_pydict() for batch in read])\n"
    )
    home = tmp_path / "home"
    for name in ("pipeline", "storage"):
        (home / name).mkdir(parents=True)
        (home / name / "__init__.py").write_text("MINE = True\n")
    (home / "storage" / "inner.py").write_text("MINE = True\n")
    done = subprocess.run(
        [sys.executable, "-c", script, str(home), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[{'offset': [0, 1, 2]}]\n"), done.stderr
