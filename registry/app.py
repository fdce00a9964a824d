"""The registry as an ASGI application: paths, content types, errors and faults; `endpoints` has the functions."""

from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from broker.control.app import EncodedPaths
from broker.logs import Logger
from protocol.errors import KafkaError
from registry.endpoints import ROUTES, Answer, Raw
from registry.errors import RegistryError
from registry.faults import Faults
from registry.names import DEFAULT_CONTEXT
from registry.records import compact_json
from registry.registry import Registry
from registry.request import Ask

_log = Logger(__name__)
CONTENT_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
"""Content types of responses, the preferred one first."""
_WITHIN_CONTEXT = "/contexts/{context}"


def build_app(registry: Registry, faults: Faults) -> Starlette:
    """Build the application. Each path is also served within a context: `/contexts/.team/subjects`."""
    routes = []
    for method, path, answer in ROUTES:
        endpoint = _endpoint(registry, faults, answer)
        routes.append(Route(path, endpoint, methods=[method]))
        if not path.startswith("/contexts"):
            routes.append(Route(f"{_WITHIN_CONTEXT}{path}", endpoint, methods=[method]))
    return Starlette(
        routes=routes,
        middleware=[Middleware(EncodedPaths)],
        exception_handlers={HTTPException: _no_route, Exception: _failure},
    )


def _endpoint(registry: Registry, faults: Faults, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        media = media_type(request.headers.get("accept", ""))
        if media is None:
            return _error(406, "HTTP 406 Not Acceptable", CONTENT_TYPES[0])
        try:
            _check_origin(request)
            await faults.meet(request.method, unquote(request.url.path))
            result = await answer(registry, Ask(request, _context(request)))
        except RegistryError as error:
            return _error(error.code, error.message, media, error.status)
        except KafkaError as error:
            return _error(50001, f"{error.code.name}: {error.message or 'the cluster refuses'}", media)
        content = result.text if isinstance(result, Raw) else compact_json(result)
        return Response(content.encode("utf-8", "surrogatepass"), media_type=media)

    return endpoint


def _context(request: Request) -> str:
    name = unquote(request.path_params.get("context", DEFAULT_CONTEXT))
    return name if name.startswith(".") else f".{name}"


def _check_origin(request: Request) -> None:
    """Reject writes from pages of other sites in a visitor's browser. Raises RegistryError 403."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("//")[2] != request.headers.get("host", ""):
        raise RegistryError(403, f"a page of {origin} may not use this registry")


def media_type(accept: str) -> str | None:
    """Return the content type of the response; None if the client accepts none of them."""
    offered = [part.partition(";")[0].strip().lower() for part in accept.split(",") if part.strip()]
    if not offered or any(name in {"*/*", "application/*", "text/plain"} for name in offered):
        named = [name for name in CONTENT_TYPES if name in offered]
        return named[0] if named else CONTENT_TYPES[0]
    return next((name for name in CONTENT_TYPES if name in offered), None)


def _error(code: int, message: str, media: str, status: int | None = None) -> Response:
    document = {"error_code": code, "message": message}
    return Response(
        compact_json(document).encode("utf-8", "replace"),
        status or (code if code < 1000 else code // 100),  # as RegistryError.status
        media_type=media,
    )


async def _no_route(request: Request, error: Exception) -> Response:
    """Return the error for an unknown path or method."""
    assert isinstance(error, HTTPException)
    names = {404: "Not Found", 405: "Method Not Allowed"}
    text = f"HTTP {error.status_code} {names.get(error.status_code, error.detail)}"
    return _error(error.status_code, text, media_type(request.headers.get("accept", "")) or CONTENT_TYPES[0])


async def _failure(request: Request, error: Exception) -> Response:
    """Return the response to an internal error: one sentence; the traceback is in the log."""
    _log.error("the schema registry failed", path=request.url.path, exc_info=error)
    return _error(50001, f"{type(error).__name__}; see the server's log", CONTENT_TYPES[0])
