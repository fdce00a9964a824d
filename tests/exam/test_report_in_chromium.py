"""The page of an exam in a headless Chromium: its columns sort."""

from pathlib import Path

import pytest

from tests.control.chromium import TOOLS, chromium
from tests.exam.test_command import FIRST, RESULT, SECOND
from tests.examples.running import needs
from understudy.exam import report

ROWS = "[...document.querySelectorAll('#scenarios tbody tr')]"
pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


def test_the_columns_sort(tmp_path: Path) -> None:
    """What failed first, at a click; what passed first, at a second one; the evidence moves along."""
    needs(*TOOLS)
    file = tmp_path / "exam.html"
    file.write_text(report.rendered(RESULT, "html"), encoding="utf-8")
    with chromium(tmp_path / "profile") as page:
        page.driver.get(file.as_uri())
        orders = []
        for _ in range(2):
            page.script("document.querySelector('th.verdict button').click()")
            orders.append(page.script(f"return {ROWS}.map((row) => row.dataset.scenario)"))
        evidence = page.script(f"return {ROWS}[1].querySelector('pre').textContent")
        sorted_by = page.script("return document.querySelector('th.verdict').ariaSort")
    assert orders == [[FIRST.id, SECOND.id], [SECOND.id, FIRST.id]]
    assert evidence == "request 1\nrequest 2"
    assert sorted_by == "descending"
