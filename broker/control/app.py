"""The control plane as an ASGI application with a route for each verb."""

import hmac
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.control import console, document, origin_check
from broker.control.hosting import FIRST, READABLE, Clusters, Hosted
from broker.control.performing import perform
from broker.control.problems import Problem, conflict, unprocessable
from broker.control.request import ControlRequest
from broker.logs import Logger
from broker.time.clock import in_slices
from control_api.encoding import json_in_steps
from control_api.reading import Unfit
from control_api.spelling import closest
from control_api.verb import Verb
from control_api.verbs import VERBS
from protocol.errors import KafkaError

_log = Logger(__name__)
_OF_CLUSTER = re.compile(r"/clusters/([^/?]+)(/|$)")
Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(clusters: Clusters, token: str | None) -> Starlette:
    """Build the application. All verbs but `health` require the token, if given; the console's page holds no data.

    Below ``/clusters/ID`` everything is there again, for that cluster.
    """
    routes = [Route(verb.path, _endpoint(clusters, verb, token), methods=[verb.method]) for verb in VERBS]

    async def openapi(request: Request) -> Response:  # noqa: ARG001
        from broker.control import openapi as described  # noqa: PLC0415 - rarely requested

        return JSONResponse(described.document())

    app = Starlette(
        routes=[*routes, Route("/openapi.json", openapi), *console.routes()],
        middleware=[Middleware(EncodedPaths)],
        exception_handlers={HTTPException: _http_problem, Exception: _failure},
    )
    app.router.redirect_slashes = False  # an empty name must be a 404, not a redirect to the list
    return app


class EncodedPaths:
    """Middleware that routes by the undecoded path: the group a/b is a%2Fb in it; it takes /clusters/ID off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route a request."""
        if scope["type"] == "http" and "raw_path" in scope:
            path = scope["raw_path"].decode("latin-1")
            of_cluster = _OF_CLUSTER.match(path)
            if of_cluster and not of_cluster[2]:  # the page has relative addresses
                await RedirectResponse(f"{path}/")(scope, receive, send)
                return
            if of_cluster:
                scope = {**scope, "cluster": of_cluster[1]}
                path = path[len(of_cluster[0]) - 1 :]
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)


def _endpoint(clusters: Clusters, verb: Verb, token: str | None) -> Endpoint:
    async def checked(request: Request) -> Response:
        if token is None:
            origin_check.check(request)
        elif verb.path != "/v1/health":
            _check_token(request, token)
        return await _run(clusters, verb, request)

    async def endpoint(request: Request) -> Response:
        try:
            return await _or_problem(checked(request))
        except ClientDisconnect:  # while sending the body: there is no caller to respond to
            return Response(status_code=400)

    return endpoint


async def call(
    clusters: Clusters, verb: Verb, names: Mapping[str, str], query: Mapping[str, str], body: bytes
) -> tuple[int, bytes]:
    """Perform a verb for a caller in this process, without HTTP; return the status and the content of its response.

    ``body`` is JSON, or empty.
    """
    hosted = clusters.first

    async def performed() -> Response:
        sent = await in_slices(document.parse(body))
        command = ControlRequest(hosted.source, names, sent, None, hosted.activity, hosted.recorder, clusters)
        return await _perform(hosted, command, verb, query)

    response = await _or_problem(performed())
    if isinstance(response, StreamingResponse):
        return response.status_code, b"".join([bytes(each) async for each in response.body_iterator])  # type: ignore[arg-type]
    return response.status_code, bytes(response.body)


async def _or_problem(work: Coroutine[Any, Any, Response]) -> Response:
    """Return the response, or the problem that prevents it."""
    try:
        return await work
    except Unfit as unfit:
        return _answer(unprocessable(unfit.detail, unfit.field))
    except Problem as problem:
        return _answer(problem)
    except KafkaError as error:
        return _answer(conflict(f"{error.code.name}: {error.message or 'the cluster refused it'}"))


async def _run(clusters: Clusters, verb: Verb, request: Request) -> Response:
    """Read the body, perform the verb, encode its answer. Raises Unfit, Problem or KafkaError."""
    hosted = clusters.of(unquote(request.scope.get("cluster", FIRST)))
    if verb.name.startswith("clusters "):  # they are about the process
        hosted = clusters.first
    elif hosted.ended and verb.name not in READABLE:
        raise hosted.gone()
    sent = await _body(request)
    names = {name: unquote(value) for name, value in request.path_params.items()}
    base_url = f"{request.url.scheme}://{request.headers.get('host', '')}"
    command = ControlRequest(
        hosted.source, names, sent, request.is_disconnected, hosted.activity, hosted.recorder, clusters, base_url
    )
    return await _perform(hosted, command, verb, request.query_params)


async def _perform(hosted: Hosted, command: ControlRequest, verb: Verb, query: Mapping[str, str]) -> Response:
    with hosted.request():
        answer = await perform(command, verb, query)
        if isinstance(answer, Response):
            return answer
        content = await in_slices(json_in_steps(verb.answer_type, answer))
    return Response(content, verb.status, media_type="application/json")


def _check_token(request: Request, token: str) -> None:
    authorization = request.headers.get("authorization", "")
    if not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
        raise Problem(401, "send the header 'Authorization: Bearer TOKEN' with the token of --control-token")


async def _body(request: Request) -> dict[str, object]:
    """Return the JSON object of the body; empty without a body. Raises Problem 422."""
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > document.MOST_BYTES:
            raise unprocessable(f"the body is larger than {document.MOST_BYTES} bytes")
    return await in_slices(document.parse(bytes(raw)))


def _answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(problem.document(), problem.status, headers, media_type="application/problem+json")


async def _http_problem(request: Request, error: Exception) -> Response:
    """Respond to an unknown path (404) or a wrong method (405)."""
    assert isinstance(error, HTTPException)
    path = unquote(request.url.path)
    if error.status_code == 404:
        meant = closest(path, [shape for shape in _shaped(path) if shape != path])  # equal: an empty name
        hint = f"did you mean {meant}? " if meant else ""
        return _answer(Problem(404, f"there is no {path}; {hint}/openapi.json lists all paths"))
    if error.status_code == 405:
        sent = request.scope["path"]  # undecoded: a slash in a name is %2F
        methods = [verb.method for verb in VERBS if re.fullmatch(re.sub(r"{\w+}", "[^/]+", verb.path), sent)] or ["GET"]
        answer = Problem(405, f"{path} does not support {request.method}; write {' or '.join(methods)} {path}")
        return _answer(answer, {"Allow": ", ".join(methods)})
    return _answer(Problem(error.status_code, f"{request.method} {path}: {error.detail}"))


def _shaped(path: str) -> list[str]:
    """Return the paths of all verbs, with their parameters replaced by the parts of this path."""
    parts = path.split("/")
    return [
        "/".join(
            parts[at] if part.startswith("{") and at < len(parts) else part
            for at, part in enumerate(verb.path.split("/"))
        )
        for verb in VERBS
    ]


async def _failure(request: Request, error: Exception) -> Response:
    """Respond to a bug of ours with one sentence; the traceback is logged."""
    _log.error("control verb failed", path=request.url.path, exc_info=error)
    return _answer(Problem(500, f"{type(error).__name__} in {request.method} {request.url.path}; see the server's log"))
