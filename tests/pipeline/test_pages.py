"""Pages: what comes from data is shown, and never obeyed."""

from types import SimpleNamespace

import pytest

from pipeline.rendering import html

EVIL = "<script>alert('x')</script>&\""
SHOWN = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&#34;"


def check(name: str) -> SimpleNamespace:
    """A check whose every text is evil."""
    return SimpleNamespace(name=name, severity="error", title=EVIL, explanation=f"see `{EVIL}`", sql=EVIL)


def test_markup_in_data_is_shown_as_text() -> None:
    """Titles, attributes, cells, columns, queries and prose."""
    finding = SimpleNamespace(check=check("c"), columns=[EVIL], rows=[{EVIL: EVIL}], count=7)
    report = SimpleNamespace(findings=[finding])
    text = html.page("audit.html", EVIL, EVIL, report=report, drawn=[], key=[], quiet=[check("d")])
    assert "<script>" not in text
    assert text.count(SHOWN) == 9
    assert f"see <code>{SHOWN}</code>" in text
    assert f"<li title='{SHOWN}'>d</li>" in text
    assert f"<td>{SHOWN}</td></tr></table></div><p class=quiet>... and 6 more</p>" in text


@pytest.mark.parametrize(("rows", "kept", "hidden"), [(3, 3, 0), (50, 50, 0), (51, 50, 1)])
def test_a_table_is_cut_and_counts_the_hidden_rows(rows: int, kept: int, hidden: int) -> None:
    """Numbers are aligned to the right, sizes have units, and null is an empty cell."""
    lines = [{"size_bytes": 2048, "name": None, "count": number} for number in range(rows)]
    answer = SimpleNamespace(
        question=SimpleNamespace(name="size", title="how much", explanation="", sql=""),
        shown_columns=["size_bytes", "name", "count"], rows=lines, count=rows,
    )  # fmt: skip
    text = html.page("report.html", "t", "s", sections=[(answer, [])], nothing="none")
    assert text.count("<tr><td") == kept
    assert "<tr><td class=number>2.0 KiB</td><td></td><td class=number>0</td></tr>" in text
    assert (f"... and {hidden} more" in text) == bool(hidden)
    assert "<h2>How much</h2>" in text
