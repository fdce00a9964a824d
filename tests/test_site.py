"""The documentation as a site: it builds without a warning, each link leads somewhere, nothing comes from elsewhere."""

import logging
import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


@pytest.mark.slow
def test_every_page_is_there(site: Path) -> None:
    """And each page of docs/ is in the menu, so that it can be found."""
    pages = {path.name.replace(".md", ".html") for path in (ROOT / "docs").glob("*.md")}
    text = (site / "index.html").read_text(encoding="utf-8")
    menu = text.partition("md-nav--primary")[2].partition("md-content")[0]
    assert sorted(pages - set(re.findall(r'href="?([\w./-]+\.html)', menu))) == []
    assert [page for page in pages if not (site / page).is_file()] == []
    assert len(list((site / "specification").glob("*/*.html"))) > 10


def test_links_to_sources_are_their_paths(site: Path) -> None:
    """The site has no copy of an example's source."""
    page = (site / "docker-and-ci.html").read_text(encoding="utf-8")
    assert "<code>examples/ci/github.yml</code>" in page
    assert 'href="../examples/ci' not in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """No fonts, no scripts: the site works without a network. Links that a reader may follow are another matter."""
    for page in (site / "index.html", site / "faults-and-time.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"?https?://(?!127\.0\.0\.1)[^>]*>", text) == []


@pytest.mark.slow
@pytest.mark.parametrize("line", ["[no such part](index.md#gone)", "[gone](../gone/file.py)"])
def test_a_dead_link_fails_the_build(line: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The positive control of the build above."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# One page\n\n{line}\n", encoding="utf-8")
    config = load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(tmp_path / "site"), nav=None)
    with caplog.at_level(logging.WARNING), pytest.raises(Abort):
        build(config)
