"""The web console at ``/``: a page of plain HTML, CSS and JavaScript that calls the verbs.

The files are in this directory and are served unchanged. They hold no data, so they need no token; the page prompts for
it when a verb requires it. The Content-Security-Policy restricts the page to this server and to scripts from these
files; data is inserted as text (``dom.js``), never as markup.
"""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).parent
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
    """Return the routes: the page at ``/``, its files below ``/console/``."""
    return [_route("/", "index.html"), *(_route(f"/console/{name}", name) for name in FILES)]


def _route(path: str, name: str) -> Route:
    async def serve(request: Request) -> Response:  # noqa: ARG001
        return Response((FOLDER / name).read_bytes(), media_type=TYPES[Path(name).suffix], headers=HEADERS)

    return Route(path, serve)
