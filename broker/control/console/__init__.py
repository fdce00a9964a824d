"""The web console at ``/``: a page of plain HTML, CSS and JavaScript that calls the verbs; and the rules that it cites.

The files are in this directory and are served unchanged. They hold no data, so they need no token; the page prompts for
it when a verb requires it. The Content-Security-Policy restricts the page to this server and to scripts from these
files; data is inserted as text (``dom.js``), never as markup.
"""

import html
import re
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from broker.settings import specification

FOLDER = Path(__file__).parent
SPECIFICATION = FOLDER.parents[2] / specification.FOLDER
"""In a checkout and in a wheel alike: beside the package ``broker``."""
RULES = tuple(sorted(SPECIFICATION.glob("*/*.md")))
_ANCHOR = re.compile("&lt;a id=&quot;([a-z0-9-]+)&quot;&gt;&lt;/a&gt;")
_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    '<link rel="stylesheet" href="/console/style.css"><pre class="specification">{text}</pre></html>'
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = tuple(sorted(path.name for path in FOLDER.iterdir() if path.suffix in TYPES and path.name != "index.html"))
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def routes() -> list[Route]:
    """Return the routes: the page at ``/``, its files below ``/console/``, the specification where citations lead."""
    files = [_route("/", "index.html"), *(_route(f"/console/{name}", name) for name in FILES)]
    return [*files, *(_rules(page) for page in RULES)]


def _rules(page: Path) -> Route:
    """Serve a page of the specification as it is written, each line with the anchors in it."""
    name = page.relative_to(SPECIFICATION).as_posix()

    async def serve(request: Request) -> Response:  # noqa: ARG001
        return Response(_PAGE.format(title=name, text=_text(page)), media_type="text/html", headers=HEADERS)

    return Route(f"/{specification.FOLDER}/{name}", serve)


def _text(page: Path) -> str:
    return "\n".join(_anchored(line) for line in html.escape(page.read_text(encoding="utf-8")).splitlines())


def _anchored(line: str) -> str:
    for anchor in _ANCHOR.findall(line):
        line = f'<span id="{anchor}">{line}</span>'
    return _ANCHOR.sub("", line)


def _route(path: str, name: str) -> Route:
    async def serve(request: Request) -> Response:  # noqa: ARG001
        return Response((FOLDER / name).read_bytes(), media_type=TYPES[Path(name).suffix], headers=HEADERS)

    return Route(path, serve)
