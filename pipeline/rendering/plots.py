"""Plots by matplotlib, as pieces of SVG that take the page's own colours, and as PNG files.

Black is ink: in an SVG it becomes `currentColor`, so that a plot is seen on a light and on a dark page.
"""

import io
import re
from html import escape
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

WINDOWS: Final = 60
PLAIN: Final = "#8593a3"
BLUE: Final = "#4a7fbf"
ORANGE: Final = "#e0812b"
RED: Final = "#cf4636"
DAY_MS: Final = 86_400_000
_PNG_DPI: Final = 144
_LABELS: Final = ["%Y", "%b", "%d", "%H:%M", "%H:%M", "%H:%M:%S.%f"]
_FIRST_LABELS: Final = ["", "%Y", "%b", "%b-%d", "%H:%M", "%H:%M:%S"]
_DAYS: Final = ["", "%Y", "%Y-%b", "%Y-%b-%d UTC", "%Y-%b-%d UTC", "%Y-%b-%d UTC"]
"""Labels where the ticks are years, months, days, hours, minutes, seconds; the first one of the next longer span."""
_UNITS: Final = (("d", DAY_MS), ("h", 3_600_000), ("min", 60_000), ("s", 1000))


class Picture(NamedTuple):
    """A picture with its title and its caption."""

    title: str
    caption: str
    figure: Figure

    @property
    def svg(self) -> str:
        """The drawing itself, texts as texts, without the file's head."""
        out = io.StringIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "understudy", "hatch.linewidth": 0.6}):
            self.figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        text = out.getvalue()
        text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', "", text[text.index("<svg") :], count=1)
        named = f'<svg role="img" aria-label="{escape(self.title, quote=True)}" '
        return text.replace("<svg ", named, 1).replace("#000000", "currentColor")

    @property
    def png(self) -> bytes:
        """The drawing on white."""
        out = io.BytesIO()
        self.figure.savefig(out, format="png", dpi=_PNG_DPI, metadata={"Software": "understudy"})
        return out.getvalue()


def figure(height: float, width: float = 10) -> tuple[Figure, Axes]:
    """A figure of one plot; inches."""
    made = Figure(figsize=(width, height), layout="constrained")
    axes = made.add_subplot()
    bare(axes)
    return made, axes


def bare(axes: Axes) -> None:
    """No frame above and to the right, small numbers."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize="small")


def dated(axes: Axes) -> None:
    """The horizontal axis has times of UTC: every label below a day has its hour, and the day is named once."""
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        ConciseDateFormatter(locator, formats=_LABELS, zero_formats=_FIRST_LABELS, offset_formats=_DAYS)  # type: ignore[no-untyped-call]
    )


def beside(axes: Axes, **options: Any) -> None:
    """The legend, to the right of the plot."""
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small", **options)


def literal(name: str) -> str:
    """A name of a client's, as matplotlib shows it unchanged: a dollar sign begins no formula."""
    return name.replace("$", r"\$")


def when(at_ms: float) -> float:
    """A moment as matplotlib has it: days since 1970."""
    return at_ms / DAY_MS


def span_text(width_ms: float) -> str:
    """A length of time for people: 2.5 min."""
    for unit, size in _UNITS:
        if width_ms >= size:
            return f"{width_ms / size:.3g} {unit}"
    return f"{width_ms:.3g} ms"


def window_ms(span_ms: int) -> int:
    """A round length of windows of which `WINDOWS` are enough."""
    least = span_ms // WINDOWS + 1
    rounded = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    rounded += [unit * factor for unit in (1000, 60_000, 3_600_000, DAY_MS) for factor in (1, 2, 5, 10, 15, 30)]
    return min((width for width in rounded if width >= least), default=-(-least // DAY_MS) * DAY_MS)
