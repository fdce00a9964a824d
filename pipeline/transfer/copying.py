"""The tasks of an export: they write records to Parquet files."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import sources
from pipeline.transfer import parquet
from pipeline.transfer.manifest import ExportedFile, Store, file_of
from pipeline.transfer.selection import Choice
from pipeline.transfer.tasks import Run
from pipeline.values.columns import NO_SCHEMAS, Schemas, with_values


@dataclass(frozen=True, slots=True)
class Target:
    """A folder and the columns of its files. `run` is a part of the file names; `schemas` decode keys and values."""

    out: str
    columns: pa.Schema
    run: str = "0"
    schemas: Schemas = NO_SCHEMAS

    def files(self, rows: Iterable[pa.RecordBatch], task: int) -> Iterator[str]:
        """Write the rows of a task; return its files as JSON."""
        decoded_rows = with_values(rows, self.schemas)
        return parquet.answers(parquet.write_files(decoded_rows, self.out, self.columns, task, self.run))


def copied(run: Run, options: Mapping[str, str], target: Target, choice: Choice) -> list[ExportedFile]:
    """Write the selected records of logs; return the written files in path order.

    Nothing needs SQL, so no record becomes a Spark row: each task converts bytes to Parquet by itself.
    """
    base = [name for name in target.columns.names if name not in target.schemas.columns.names]
    tasks = sources.tasks("kafka_segments", options, base, choice.conditions)
    return _files(run(partial(_copy, tasks=tasks, target=target, choice=choice), len(tasks)))


def _copy(number: int, *, tasks: Sequence[bytes], target: Target, choice: Choice) -> Iterator[str]:
    return target.files(map(choice.rows, sources.read(tasks[number])), number)


def selected(run: Run, store: Store, paths: Sequence[str], target: Target, choice: Choice) -> list[ExportedFile]:
    """Write the selected records of an export's files, one task per file; return the written files like `copied`."""
    return _files(run(partial(_select, path=store.path, names=paths, target=target, choice=choice), len(paths)))


def _select(number: int, *, path: str, names: Sequence[str], target: Target, choice: Choice) -> Iterator[str]:
    store = Store(path)
    with store.files.open_input_file(store.full(names[number])) as stream:
        rows = pq.ParquetFile(stream).iter_batches(columns=list(target.columns.names))
        yield from target.files(map(choice.rows, rows), number)


def _files(answers: Iterable[str]) -> list[ExportedFile]:
    return sorted((file_of(json.loads(text)) for text in answers), key=lambda each: each.path)


def ends(run: Run, options: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    """Yield topic, partition and last offset of batches in logs; a large partition occurs more than once."""
    tasks = sources.tasks("kafka_batches", options, ("topic", "partition", "last_offset"))
    for text in run(partial(_ends, tasks=tasks), len(tasks)):
        topic, partition, last = json.loads(text)
        yield topic, partition, last


def _ends(number: int, *, tasks: Sequence[bytes]) -> Iterator[str]:
    ends: dict[tuple[str, int], int] = {}
    for rows in sources.read(tasks[number]):
        columns = (rows.column(name).to_pylist() for name in ("topic", "partition", "last_offset"))
        for topic, partition, last in zip(*columns, strict=True):
            if last is not None:
                ends[topic, partition] = max(last, ends.get((topic, partition), last))
    yield from (json.dumps([*key, last]) for key, last in ends.items())
