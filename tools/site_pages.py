"""mkdocs hook: adds pages of the repository outside docs/, and rewrites links to files that are not pages.

ARCHITECTURE.md, the packages' pages and others become pages of the site. A link to any other file of the repository,
such as an example's source, becomes the file's path as code, because the site has no copy of it.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs"
OUTSIDE = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "examples/README.md",
    "packages/node/README.md",
    "packages/go/README.md",
    "packages/java/README.md",
    "packages/rust/README.md",
)
HOME = {"README.md": "docs/index.md"}
"""Pages that are replaced by another page of the site."""
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Return the configuration with every page of docs/ in the menu; those not in mkdocs.yml come last."""
    if config.nav:
        placed = set(re.findall(r"[\w./-]+\.md", str(config.nav)))
        others = [path.name for path in sorted(Path(config.docs_dir).glob("*.md")) if path.name not in placed]
        config.nav = [*config.nav, *([{"More": others}] if others else [])]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/; on a site of other documents, as in tests, only those that it links to."""
    if Path(config.docs_dir) == ROOT / DOCS:
        for name in OUTSIDE:
            files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Return the page with links that lead to pages of the site; code is unchanged."""
    parts = FENCE.split(markdown)
    known = {file.src_uri for file in files}
    return "".join(
        part if at % 2 else LINK.sub(lambda match: _link(match, page.file.src_uri, known), part)
        for at, part in enumerate(parts)
    )


def _link(match: re.Match[str], page: str, known: set[str]) -> str:
    text, target = match[1], match[2]
    path, mark, anchor = target.partition("#")
    if not path or "://" in target or target.startswith("mailto:"):
        return match[0]
    here = page if page in OUTSIDE else posixpath.join(DOCS, page)
    linked = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    linked = HOME.get(linked, linked)
    on_site = linked.removeprefix(f"{DOCS}/")
    if linked in OUTSIDE or (linked.startswith(f"{DOCS}/") and on_site in known):
        relative = posixpath.relpath(on_site, posixpath.dirname(page) or ".")
        return f"[{text}]({relative}{mark}{anchor})"
    if posixpath.join(linked, "README.md") in OUTSIDE:
        relative = posixpath.relpath(posixpath.join(linked, "README.md"), posixpath.dirname(page) or ".")
        return f"[{text}]({relative})"
    if not (ROOT / linked).exists():
        return match[0]  # mkdocs reports it
    shown = text.strip("`")
    return f"`{linked}`" if shown in {linked, posixpath.basename(linked)} else f"{text} (`{linked}`)"
