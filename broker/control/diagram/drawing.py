"""Lays out a diagram as lines, boxes and texts in pixels, for the console and the SVG image."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from control_api.answers.diagrams import Lane, Shape, ShapeKind, Step
from control_api.times import local_time

HEAD = 64  # pixels of a lane's title and its detail
_LEFT, _LANE, _ROW, _LINE = 96, 196, 30, 15
"""In pixels: left margin of the lanes, width of a lane, height of a row, of a line of text: ours, by eye."""
_LABEL_CHARACTERS, _REASON_CHARACTERS = 48, 70
"""The minimum line length, in characters, of a label, and of the reason below a refusal: ours, by eye."""
_TITLE_CHARACTERS, _DETAIL_CHARACTERS = 24, 30  # as many as fit into the width of a lane
_CHARACTER = 6.6
"""The width of a character of labels in pixels; the font is monospaced."""
_TIME_OF_DAY = slice(11, 23)  # of 2026-01-31T12:00:00.000


# Other numbers below are pixels, ours: margins between shapes and texts, and positions of texts of 12 pixels' height.


class Drawing(NamedTuple):
    """The shapes of a diagram, and its size in pixels."""

    shapes: tuple[Shape, ...]
    width: int
    height: int


def draw(lanes: Sequence[Lane], steps: Sequence[Step]) -> Drawing:
    """Lay out the whole diagram."""
    right = _LEFT + _LANE * len(lanes) + 8
    shapes: list[Shape] = []
    y = HEAD + 8
    for at, step in enumerate(steps):
        width_left = _beside(step, right)
        reason = wrap(step.reason, max(width_left, _REASON_CHARACTERS))
        label = step.text + (f" x{step.count}" if step.count > 1 else "")
        lines = wrap(label, width_left) or [""]
        height = max(_ROW, _ROW - _LINE + _LINE * len(lines))
        shapes += _step(step, at, lines, reason, y + height - 9)
        y += height + _LINE * len(reason)
    bottom = y + 16
    head = [shape for at, lane in enumerate(lanes) for shape in _lane(lane, _x(at), bottom)]
    ends = [each.x + int(len(each.text) * _CHARACTER) for each in shapes if each.style.startswith("label")]
    width = max(right, *ends, 0) + 40
    return Drawing((*head, *shapes), width, bottom)


def _x(lane: int) -> int:
    return _LEFT + lane * _LANE + _LANE // 2


def _beside(step: Step, right: int) -> int:
    """Return how many characters fit into a line of a step's label."""
    return max(int((right - _text_x(step)) / _CHARACTER), _LABEL_CHARACTERS)


def _text_x(step: Step) -> int:
    return _x(min(step.source, step.target)) + 10


def _lane(lane: Lane, x: int, bottom: int) -> Iterator[Shape]:
    yield _shape("box", f"lane {lane.kind}", (x - _LANE // 2 + 6, 8), (x + _LANE // 2 - 6, HEAD - 10))
    yield _shape("text", "title", (x, 27), text=_cut(lane.title, _TITLE_CHARACTERS))
    yield _shape("text", "detail", (x, 44), text=_cut(lane.detail, _DETAIL_CHARACTERS))
    yield _shape("line", "life", (x, HEAD - 10), (x, bottom))


def _step(step: Step, at: int, lines: list[str], reason: list[str], y: int) -> Iterator[Shape]:
    """Draw a step. ``y`` is the position of its arrow; the label is above it."""
    style = "refused" if step.error is not None else step.kind
    time = local_time(step.at_ms)[_TIME_OF_DAY] or str(step.at_ms)
    if step.kind != "gap":
        yield _shape("text", "time", (8, y), text=time, step=at)
    start, end = _x(step.source), _x(step.target)
    if start != end:
        back = 7 if end < start else -7
        yield _shape("line", style, (start, y), (end, y), step=at)
        yield _shape("line", f"{style} head", (end + back, y - 4), (end, y), step=at)
        yield _shape("line", f"{style} head", (end + back, y + 4), (end, y), step=at)
    else:
        yield _shape("box", f"note {style}", (start - 5, y - 10), (start + 5, y), step=at)
    top = y - 5 if start != end else y
    for number, line in enumerate(reversed(lines)):
        yield _shape("text", f"label {style}", (_text_x(step), top - number * _LINE), text=line, step=at)
    for number, line in enumerate(reason, 1):
        yield _shape("text", "label reason", (_text_x(step), y + number * _LINE), text=line, step=at)


def _shape(
    kind: ShapeKind, style: str, begin: tuple[int, int], end: tuple[int, int] = (0, 0), text: str = "", step: int = -1
) -> Shape:
    return Shape(kind=kind, style=style, x=begin[0], y=begin[1], x2=end[0], y2=end[1], text=text, step=step)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
