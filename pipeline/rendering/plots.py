"""Draws plots with matplotlib, as SVG fragments that use the page's colours, and as PNG files.

In an SVG, black becomes `currentColor`, so that a plot is visible on a light and on a dark page.
"""

import io
import re
from html import escape
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

WINDOWS: Final = 60  # as many as can be distinguished in a picture
PLAIN: Final = "#8593a3"
BLUE: Final = "#4a7fbf"
ORANGE: Final = "#e0812b"
RED: Final = "#cf4636"
DAY_MS: Final = 86_400_000
_PNG_DPI: Final = 144  # sharp on a screen of twice the usual density
_LABELS: Final = ["%Y", "%b", "%d", "%H:%M", "%H:%M", "%H:%M:%S.%f"]
_FIRST_LABELS: Final = ["", "%Y", "%b", "%b-%d", "%H:%M", "%H:%M:%S"]
_DAYS: Final = ["", "%Y", "%Y-%b", "%Y-%b-%d UTC", "%Y-%b-%d UTC", "%Y-%b-%d UTC"]
"""Labels of ticks that are years, months, days, hours, minutes, seconds; each first label shows the next larger unit.
"""
_UNITS: Final = (("d", DAY_MS), ("h", 3_600_000), ("min", 60_000), ("s", 1000))


class Picture(NamedTuple):
    """A picture with its title and its caption."""

    title: str
    caption: str
    figure: Figure

    @property
    def svg(self) -> str:
        """Return the drawing as SVG, with text as text and without the file header."""
        out = io.StringIO()
        # Thinner than lines; a fixed salt makes ids of a drawing the same each time.
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "understudy", "hatch.linewidth": 0.6}):
            self.figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        text = out.getvalue()
        text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', "", text[text.index("<svg") :], count=1)
        named = f'<svg role="img" aria-label="{escape(self.title, quote=True)}" '
        return text.replace("<svg ", named, 1).replace("#000000", "currentColor")

    @property
    def png(self) -> bytes:
        """Return the drawing as PNG on white."""
        out = io.BytesIO()
        self.figure.savefig(out, format="png", dpi=_PNG_DPI, metadata={"Software": "understudy"})
        return out.getvalue()


def figure(height: float, width: float = 10) -> tuple[Figure, Axes]:
    """Return a figure with one plot; sizes in inches, by default as wide as a page."""
    drawing = Figure(figsize=(width, height), layout="constrained")
    axes = drawing.add_subplot()
    bare(axes)
    return drawing, axes


def bare(axes: Axes) -> None:
    """Remove the frame above and to the right, and make the numbers small."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize="small")


def dated(axes: Axes) -> None:
    """Format the horizontal axis as UTC times: labels below a day show the hour, and the day is shown once."""
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        ConciseDateFormatter(locator, formats=_LABELS, zero_formats=_FIRST_LABELS, offset_formats=_DAYS)  # type: ignore[no-untyped-call]
    )


def beside(axes: Axes, **options: Any) -> None:
    """Place the legend to the right of the plot."""
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small", **options)


def literal(name: str) -> str:
    """Escape a client's name, so that matplotlib shows it unchanged: a dollar sign would begin a formula."""
    return name.replace("$", r"\$")


def when(at_ms: float) -> float:
    """Convert a time to matplotlib's: days since 1970."""
    return at_ms / DAY_MS


def span_text(width_ms: float) -> str:
    """Format a duration: 2.5 min."""
    for unit, size in _UNITS:
        if width_ms >= size:
            return f"{width_ms / size:.3g} {unit}"
    return f"{width_ms:.3g} ms"


def window_ms(span_ms: int) -> int:
    """Return a round window length, such that `WINDOWS` windows cover the span."""
    least = span_ms // WINDOWS + 1
    # Lengths that a reader can add up: of the decimal system, and of clocks.
    rounded = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    rounded += [unit * factor for unit in (1000, 60_000, 3_600_000, DAY_MS) for factor in (1, 2, 5, 10, 15, 30)]
    return min((width for width in rounded if width >= least), default=-(-least // DAY_MS) * DAY_MS)
