"""Exports a data directory to Parquet and a manifest."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.audits.sidecar_files import Tree
from pipeline.metadata_log import metadata_logs, metadata_rows
from pipeline.schemas import ddl
from pipeline.transfer import parquet
from pipeline.transfer.copying import Target, copied, ends, selected
from pipeline.transfer.manifest import NAME, Bounds, ExportedFile, Manifest, ManifestError, Store
from pipeline.transfer.runner import runner
from pipeline.transfer.selection import Choice, ChoiceError
from pipeline.transfer.staging import Staging, recover
from pipeline.values.columns import Schemas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES_SHOWN: Final = 5  # in an error message; what fits on a line
_TOPIC_RESOURCE: Final = 2
_OF_SETTINGS: Final = ("TopicRecord", "RemoveTopicRecord", "ConfigRecord")


def export(
    spark: "SparkSession | None",
    source: str,
    out: str,
    *,
    choice: Choice | None = None,
    producers: bool = False,
    isolation: str = "read_committed",
    overwrite: bool = False,
    append: bool = False,
    source_name: str | None = None,
    configs: Mapping[str, Mapping[str, str]] | None = None,
    schemas: Schemas | None = None,
    warn: Callable[[str], object] = lambda _: None,
) -> Manifest:
    """Copy the selected logs in `source` to `out`: to a staging folder first, and into place when all is written.

    With `producers` everything is copied unchanged, including aborted transactions and markers, so that a load can
    recreate the transactions; otherwise what a consumer with this isolation level sees. With `append` an export in
    `out` is continued: each partition after the last copied record. `warn` gets a sentence for each partition of which
    records were deleted before they could be copied. Without a session, everything runs in this process, with the
    same files; a choice that `needs_sql` requires a session.

    Raises:
        ManifestError: `out` holds an export already, and is neither to be overwritten nor continued; or it cannot be
            continued with these arguments.
        FileNotFoundError: no such directory.
        ChoiceError: a choice needs a session and there is none, or two topics would get the same name.
    """
    choice, schemas = choice or Choice(), schemas or Schemas()
    store = Store(out)
    before = prepare(store, overwrite=overwrite, append=append)
    topics, described_configs, ids = described(spark, source, choice)
    manifest = Manifest(
        source_name or source,
        producers,
        "read_uncommitted" if producers else isolation,
        {choice.name_of(name): each for name, each in topics.items()},
        {choice.name_of(name): each for name, each in (described_configs if configs is None else configs).items()},
        selection=choice.of_records,
        ids={choice.name_of(name): each for name, each in ids.items()},
        values=tuple(schemas.columns.names),
    )
    starts = check_continued(store, before, manifest, warn) if append and before is not None else {}
    columns = parquet.schema(producers=producers, values=manifest.values)
    options = _options(manifest, {name: starts.get(choice.name_of(name), {}) for name in topics})
    staging = Staging(store)
    staging.begin()
    target = Target(staging.out, columns, staging.run, schemas)
    try:
        files = _files(spark, {**options, "path": source}, target, choice)
        manifest = replace(manifest, topics=with_counts(manifest.topics, files), files=tuple(files))
        if append and before is not None:
            manifest = continued(before, manifest)
        staging.commit(manifest, before)
    except BaseException:
        staging.discard()
        raise
    return manifest


def _files(
    spark: "SparkSession | None", options: Mapping[str, str], target: Target, choice: Choice
) -> list[ExportedFile]:
    if not choice.needs_sql:
        return copied(runner(spark), options, target, choice)
    from pipeline.transfer.spark_tasks import applied, written  # noqa: PLC0415 - it brings Spark

    records = _session(spark).read.format("kafka_segments").options(**options).load()
    return written(applied(choice, records), target)


def _session(spark: "SparkSession | None") -> "SparkSession":
    if spark is None:
        raise ChoiceError("--where, --mask and --sample need Spark")
    return spark


def _options(manifest: Manifest, starts: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Return options of `kafka_segments`; `starts`: source topic -> partition -> first offset, where known."""
    return {
        "columns": ",".join(
            # Without the seven columns of Spark's own Kafka source.
            name
            for name in parquet.schema(producers=manifest.producers).names[7:]
            if name != "headers"
        ),
        "includeHeaders": "true",
        "topics": ",".join(starts),
        "isolation": manifest.isolation,
        "control": str(manifest.producers).lower(),
        "startingOffsets": json.dumps(starts),
    }


def chosen(
    spark: "SparkSession | None", store: Store, manifest: Manifest, choice: Choice, out: str
) -> tuple[Store, Manifest]:
    """Export the selected records of an export to another folder. Without Spark as in `export`."""
    columns = parquet.schema(producers=manifest.producers)
    names = [each.path for each in manifest.files if choice.wants(each.topic)]
    unnamed, target = replace(choice, renamed={}), Target(out, columns)
    if not choice.needs_sql:
        made_files = selected(runner(spark), store, names, target, unnamed)
    elif names:
        from pipeline.transfer.spark_tasks import applied, written  # noqa: PLC0415 - it brings Spark

        read = _session(spark).read.schema(ddl(columns)).parquet(*(f"{store.path}/{name}" for name in names))
        # Spark distributes files by size: a task could get the first and last of a partition, but none in between.
        whole = read.repartition("topic", "partition")
        records = whole.sortWithinPartitions("topic", "partition", "offset")
        made_files = written(applied(unnamed, records.select(*columns.names)), target)
    else:
        made_files = []
    plain = {
        name: {number: Bounds(each.log_start, each.log_end) for number, each in partitions.items()}
        for name, partitions in manifest.topics.items()
    }
    return Store(out), replace(manifest, topics=with_counts(plain, made_files), files=tuple(made_files))


def prepare(store: Store, *, overwrite: bool, append: bool = False) -> Manifest | None:
    """Remove what a killed export has left, and return the export that is to be replaced or continued.

    Raises:
        ManifestError: the folder holds an export that may not be replaced, files that belong to no export, or an export
            that is being written.
    """
    recover(store)
    if not store.exists(NAME):
        if names := store.names():
            more = ", ..." if len(names) > _NAMES_SHOWN else ""
            raise ManifestError(
                f"{store.path} is not empty and holds no export ({', '.join(names[:_NAMES_SHOWN])}{more}); "
                "choose an empty folder, or one that does not exist yet"
            )
        return None
    if not (overwrite or append):
        raise ManifestError(
            f"{store.path} holds an export already; use --overwrite to replace it, or --append to continue it"
        )
    return store.read_manifest()


def check_source(source: str, choice: Choice) -> None:
    """Check, without Spark, that a data directory has a selected topic. Raises as `check_topics`."""
    partitions = [each for directory in Tree(source).directories() for each in Tree(directory).partitions()]
    check_topics(source, (each.topic for each in partitions), choice)


def check_topics(source: str, topics: Iterable[str], choice: Choice) -> None:
    """Check the existing topics.

    Raises:
        FileNotFoundError: none of them is selected.
        ChoiceError: two of them would get the same name.
    """
    known = sorted(set(topics))
    if not any(map(choice.wants, known)):
        ours = [name for name in known if not name.startswith("__")]
        others = f"its topics are {', '.join(ours[:_NAMES_SHOWN])}" if ours else "it has none but internal ones"
        wanted = f"no topic {', '.join(choice.topics)}" if choice.topics else "no topic to copy"
        raise FileNotFoundError(f"{source} has {wanted}; {others}{', ...' if len(ours) > _NAMES_SHOWN else ''}")
    check_names(filter(choice.wants, known), choice)


def check_names(topics: Iterable[str], choice: Choice) -> None:
    """Raise ChoiceError if two topics would get the same name: their records would have the same offsets."""
    if (double := choice.twice(topics)) is not None:
        raise ChoiceError(f"two topics would become {double}; give them different names with --topic-map")


def described(
    spark: "SparkSession | None", source: str, choice: Choice
) -> tuple[dict[str, dict[int, Bounds]], dict[str, dict[str, str]], dict[str, str]]:
    """Return the selected topics with the bounds of their logs, their settings and their ids. Raises ChoiceError."""
    topics: dict[str, dict[int, Bounds]] = {}
    ids: dict[str, str] = {}
    for directory in Tree(source).directories():
        for each in Tree(directory).partitions():
            if choice.wants(each.topic):
                if each.topic_id is not None:
                    ids[each.topic] = each.topic_id
                start = each.first_segment_base if each.log_start is None else each.log_start
                end = max(each.last_segment_base, each.high_watermark or 0)
                known = topics.setdefault(each.topic, {}).get(each.partition, Bounds(start, end))
                topics[each.topic][each.partition] = Bounds(min(known.log_start, start), max(known.log_end, end))
    check_names(topics, choice)
    for topic, number, last in ends(runner(spark), {"topics": ",".join(topics) or "-", "path": source}):
        partitions = topics.get(topic, {})
        if number in partitions:
            known = partitions[number]
            partitions[number] = replace(known, log_end=max(known.log_end, last + 1))
    return topics, topic_settings(source, topics), ids


def topic_settings(source: str, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the topic configurations of existing topics, from the metadata log and its newest snapshot."""
    wanted = set(topics)
    names: dict[str, str] = {}
    settings_by_topic: dict[str, dict[str, str]] = {}
    for row in metadata_rows(metadata_logs(source)):
        if row["type"] not in _OF_SETTINGS:
            continue
        record = json.loads(row["record"])
        if row["type"] == "TopicRecord":
            names[record["topic_id"]] = record["name"]
        elif row["type"] == "RemoveTopicRecord":  # deleting the topic removes its configuration without a record
            settings_by_topic.pop(names.get(record["topic_id"], ""), None)
        elif record.get("resource_type") == _TOPIC_RESOURCE and record.get("resource_name") in wanted:
            settings = settings_by_topic.setdefault(record["resource_name"], {})
            if record.get("value") is None:
                settings.pop(record["name"], None)
            else:
                settings[record["name"]] = record["value"]
    return settings_by_topic


def check_continued(
    store: Store, before: Manifest, now: Manifest, warn: Callable[[str], object]
) -> dict[str, dict[str, int]]:
    """Return where each partition of an earlier export continues: topic -> partition -> offset.

    Raises:
        ManifestError: the earlier export has other options, or its topics are not those of the source.
    """
    names = ("producers", "isolation", "selection", "values")
    if differing := [name for name in names if getattr(before, name) != getattr(now, name)]:
        raise ManifestError(
            f"{store.path} was exported with other options ({', '.join(differing)}); continue it with the same ones"
        )
    starts: dict[str, dict[str, int]] = {}
    for name, partitions in now.topics.items():
        if name in before.ids and name in now.ids and before.ids[name] != now.ids[name]:
            raise ManifestError(
                f"{name} was deleted and created again since the export: its id differs; use --overwrite"
            )
        for number, bounds in partitions.items():
            known = before.topics.get(name, {}).get(number)
            if known is None or known.last_offset is None:
                continue
            if bounds.log_end <= known.last_offset:
                raise ManifestError(
                    f"{name}-{number} ends at {bounds.log_end}, and the export has records up to {known.last_offset}: "
                    "the log was truncated, or is that of another topic; use --overwrite"
                )
            start = known.last_offset + 1
            if bounds.log_start > start:
                warn(
                    f"{name}-{number}: offsets {start} to {bounds.log_start - 1} were deleted before they were exported"
                )
            starts.setdefault(name, {})[str(number)] = start
    return starts


def continued(before: Manifest, now: Manifest) -> Manifest:
    """Return the manifest of an export and of what was added to it."""
    topics: dict[str, dict[int, Bounds]] = {name: dict(partitions) for name, partitions in before.topics.items()}
    for name, partitions in now.topics.items():
        for number, new in partitions.items():
            old = topics.setdefault(name, {}).get(number)
            topics[name][number] = new if old is None else _joined(old, new)
    return replace(
        now, topics=topics, configs={**before.configs, **now.configs}, files=before.files + now.files,
        ids={**before.ids, **now.ids},
    )  # fmt: skip


def _joined(old: Bounds, new: Bounds) -> Bounds:
    return Bounds(
        old.log_start,
        max(old.log_end, new.log_end),
        old.records + new.records,
        new.first_offset if old.first_offset is None else old.first_offset,
        old.last_offset if new.last_offset is None else new.last_offset,
    )


def with_counts(
    topics: Mapping[str, Mapping[int, Bounds]], files: Iterable[ExportedFile]
) -> dict[str, dict[int, Bounds]]:
    """Return the bounds with what was copied of each partition, which may be more if the source is being written."""
    counted = {name: dict(partitions) for name, partitions in topics.items()}
    for each in files:
        for part in each.parts:
            end = part.last_offset + 1
            known = counted[each.topic].get(part.partition, Bounds(part.first_offset, end))
            firsts, lasts = {part.first_offset, known.first_offset}, {part.last_offset, known.last_offset}
            counted[each.topic][part.partition] = replace(
                known,
                log_end=max(known.log_end, end),
                records=known.records + part.records,
                first_offset=min(each for each in firsts if each is not None),
                last_offset=max(each for each in lasts if each is not None),
            )
    return counted


def verify(store: Store, manifest: Manifest) -> None:
    """Verify the checksum of every file. Raises ManifestError for the first that differs or is missing."""
    for each in manifest.files:
        if not store.exists(each.path):
            raise ManifestError(f"{store.path}: {each.path} is missing")
        if store.sha256(each.path) != each.sha256:
            raise ManifestError(f"{store.path}: {each.path} is not what was exported: its checksum differs")
