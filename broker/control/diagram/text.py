"""Renders a diagram in characters: lanes as columns, labels beside them."""

from collections.abc import Iterator, Sequence

from control_api.answers.diagrams import Lane, Step
from control_api.times import local_time

_TIME_OF_DAY = slice(11, 23)  # of 2026-01-31T12:00:00.000
_INDENT = 13  # a time of day and a space
_COLUMN = 9
"""The distance of two lanes, in characters: narrow, as ten lanes must fit on a line."""
_WIDEST = 110
"""The width of labels beside the lanes, in characters; longer ones are wrapped.

With the lanes, what a wide terminal shows.
"""


def text(title: str, lanes: Sequence[Lane], steps: Sequence[Step]) -> str:
    """Render the whole diagram."""
    lines = [title, *_legend(lanes), "", _row("", {at: str(at + 1) for at in range(len(lanes))}, len(lanes), "")]
    at = 0
    while at < len(steps):
        step, after = steps[at], steps[at + 1] if at + 1 < len(steps) else None
        # A response that directly follows shares the line of its request.
        answer = after if step.kind == "request" and after is not None and _answers(step, after) else None
        lines += _lines(step, answer, len(lanes))
        at += 1 if answer is None else 2
    return "\n".join(line.rstrip() for line in lines)


def _answers(step: Step, after: Step) -> bool:
    return after.kind == "answer" and after.entry == step.entry


def _legend(lanes: Sequence[Lane]) -> Iterator[str]:
    for number, lane in enumerate(lanes, start=1):
        yield f"  {number} {lane.title}" + (f" ({lane.detail})" if lane.detail else "")


def _row(time: str, marks: dict[int, str], lanes: int, label: str) -> str:
    line = "".join(f"{marks.get(at, '|'):{_COLUMN}}" for at in range(lanes))
    return f"{time:{_INDENT}}{line} {label}"


def _lines(step: Step, answer: Step | None, lanes: int) -> Iterator[str]:
    label = step.text + (f" x{step.count}" if step.count > 1 else "")
    refused = step if answer is None else answer
    if answer is not None:
        label += f" -> {answer.text}"
    if step.kind == "gap":
        yield _row("", dict.fromkeys(range(lanes), ":"), lanes, f"... {label}")
        return
    first, *rest = _wrapped(label)
    yield _arrow(step, lanes, first)
    for more in rest:
        yield _row("", {}, lanes, f"  {more}")
    for more in _wrapped(f"because: {refused.reason}") if refused.reason else ():
        yield _row("", {}, lanes, f"  {more}")


def _arrow(step: Step, lanes: int, label: str) -> str:
    time = local_time(step.at_ms)[_TIME_OF_DAY] or str(step.at_ms)
    if step.source == step.target:
        return _row(time, {step.source: {"fault": "!", "hold": "="}.get(step.kind, "*")}, lanes, label)
    low, high = sorted((step.source, step.target))
    dash = {"answer": ".", "append": "~"}.get(step.kind, "-")
    row = list("".join(f"{'|':{_COLUMN}}" for _ in range(lanes)))
    for at in range(low * _COLUMN + 1, high * _COLUMN):
        row[at] = dash
    head = step.target * _COLUMN + (-1 if step.target > step.source else 1)
    row[head] = ">" if step.target > step.source else "<"
    if step.kind == "answer" and step.error is not None:
        row[(low * _COLUMN + high * _COLUMN) // 2] = "x"
    return f"{time:{_INDENT}}{''.join(row)} {label}"


def _wrapped(label: str) -> list[str]:
    """Wrap a text at blanks; a part that is longer than a line gets its own line."""
    lines = [""]
    for part in label.split(" "):
        if lines[-1] and len(lines[-1]) + len(part) >= _WIDEST:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + part
    return lines
