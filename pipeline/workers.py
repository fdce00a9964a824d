"""Runs functions as the tasks of a Spark application.

They are tasks of Spark's core. Its SQL would start a second part of Spark's Java, which takes as long as the first.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from pipeline.audits.engine import EngineError
from pipeline.rendering.text import last_line

if TYPE_CHECKING:
    from pyspark import SparkContext

Row = TypeVar("Row")


def run(context: "SparkContext", task: Callable[[int], Iterable[Row]], count: int) -> list[Row]:
    """Run a task for each number below `count`; return what they yield, in this order.

    Raises EngineError: a task failed, or Spark did.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 - `settle` needs no Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as above

    numbers = context.parallelize(range(count), max(1, count))  # one number each
    try:
        return numbers.mapPartitions(partial(_each, task=task)).collect()
    except (Py4JError, PySparkException) as error:
        raise EngineError(last_line(error)) from error


def _each(numbers: Iterable[int], *, task: Callable[[int], Iterable[Row]]) -> Iterator[Row]:
    settle()
    for number in numbers:
        yield from task(number)


@cache
def settle() -> None:
    """Exclude all loaded objects from garbage collection, once per process.

    Spark's worker collects garbage after each task. Scanning the objects of all loaded packages takes about 60 ms each
    time, as long as decoding 200,000 records.
    """
    gc.freeze()
