"""Runs tasks of an export or a load one after another in this process; `spark_tasks` runs them on Spark."""

from collections.abc import Callable, Iterable

Task = Callable[[int], Iterable[str]]
"""Function of a task: its number, from 0 -> its results, as JSON."""
Run = Callable[[Task, int], list[str]]
"""Runs a number of tasks, and returns their results."""


def in_process(task: Task, count: int) -> list[str]:
    """Run the tasks in this process."""
    return [answer for number in range(count) for answer in task(number)]
