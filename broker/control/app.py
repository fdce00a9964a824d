"""The control plane as an ASGI application: the table of verbs made into routes."""

import json
import re
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from broker.control import console, origin
from broker.control.asked import Asked
from broker.control.openapi import document
from broker.control.problems import Problem, conflict, unprocessable
from broker.control.verbs import VERBS, Verb
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.cluster import Cluster

_log = structlog.get_logger(__name__)
_MAX_BODY_BYTES = 8 * 1024 * 1024
Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(cluster: "Cluster", token: str | None) -> Starlette:
    """The application; with a token, every verb but the health check asks for it. The console's page has no data."""
    routes = [Route(verb.path, _endpoint(cluster, verb, token), methods=[verb.method]) for verb in VERBS]

    async def openapi(request: Request) -> Response:  # noqa: ARG001
        return JSONResponse(document(VERBS))

    return Starlette(
        routes=[*routes, Route("/openapi.json", openapi), *console.routes()],
        exception_handlers={HTTPException: _http_problem, Exception: _failure},
    )


def _endpoint(cluster: "Cluster", verb: Verb, token: str | None) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            if token is None:
                origin.check(request)
            elif verb.path != "/v1/health":
                _check_token(request, token)
            query = dict(request.query_params)
            for name in query:
                if name not in verb.query:
                    known = ", ".join(verb.query) or "none"
                    raise unprocessable(f"unknown parameter {name!r}; known parameters: {known}", name)
            asked = Asked(cluster, request.path_params, query, await _body(request))
            if verb.body is None:
                asked.only()
            answer = await verb.run(asked)
            return answer if isinstance(answer, Response) else JSONResponse(answer)
        except Problem as problem:
            return _answer(problem)
        except KafkaError as error:
            return _answer(conflict(f"{error.code.name}: {error.message or 'the cluster refuses'}"))

    return endpoint


def _check_token(request: Request, token: str) -> None:
    given = request.headers.get("authorization", "")
    if given != f"Bearer {token}":
        raise Problem(401, "send the header 'Authorization: Bearer TOKEN' with the token of --control-token")


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object sent along; empty if nothing was. Raises Problem 422."""
    raw = b""
    async for piece in request.stream():
        raw += piece
        if len(raw) > _MAX_BODY_BYTES:
            raise unprocessable(f"the body is larger than {_MAX_BODY_BYTES} bytes")
    if not raw.strip():
        return {}
    try:
        parsed = json.loads(raw)
    except ValueError as error:
        raise unprocessable(f"the body is no JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise unprocessable("the body must be a JSON object")
    return parsed


def _answer(problem: Problem) -> Response:
    return JSONResponse(problem.document(), problem.status, media_type="application/problem+json")


async def _http_problem(request: Request, error: Exception) -> Response:
    """No route, or the wrong method."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 404:
        meant = get_close_matches(path, _shaped(path), n=1, cutoff=0.6)
        told = f"did you mean {meant[0]}? " if meant else ""
        return _answer(Problem(404, f"there is no {path}; {told}/openapi.json lists what there is"))
    if error.status_code == 405:
        known = [verb.method for verb in VERBS if re.fullmatch(re.sub(r"{\w+}", "[^/]+", verb.path), path)]
        return _answer(Problem(405, f"{request.method} {path} means nothing; write {' or '.join(known)} {path}"))
    return _answer(Problem(error.status_code, f"{request.method} {path}: {error.detail}"))


def _shaped(path: str) -> list[str]:
    """The paths of the verbs, with the names that stand in this one at the same places."""
    said = path.split("/")
    return [
        "/".join(
            said[at] if part.startswith("{") and at < len(said) else part
            for at, part in enumerate(verb.path.split("/"))
        )
        for verb in VERBS
    ]


async def _failure(request: Request, error: Exception) -> Response:
    """A fault of ours: the log has the traceback, the client one sentence."""
    _log.error("control verb failed", path=request.url.path, exc_info=error)
    return _answer(Problem(500, f"{type(error).__name__} in {request.method} {request.url.path}; see the server's log"))
