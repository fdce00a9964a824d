"""The OpenAPI document, made from the table of verbs."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from broker.control.answers import SCHEMAS, ref

if TYPE_CHECKING:
    from broker.control.verbs import Verb

_NAME = re.compile(r"{(\w+)}")
_PROBLEM = {"description": "a problem", "content": {"application/problem+json": {"schema": ref("Problem")}}}


def _content(verb: "Verb") -> dict[str, Any]:
    return {"schema": ref(verb.answer)} if verb.answer else {}


def document(verbs: "Iterable[Verb]") -> dict[str, Any]:
    """All verbs, with their parameters, bodies and errors."""
    paths: dict[str, dict[str, Any]] = {}
    for verb in verbs:
        operation: dict[str, Any] = {
            "operationId": f"{verb.method.lower()}_{verb.run.__module__.rsplit('.', 1)[-1]}_{verb.run.__name__}",
            "summary": verb.summary,
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in _NAME.findall(verb.path)
            ]
            + [
                {"name": name, "in": "query", "required": False, "schema": dict(schema)}
                for name, schema in verb.query.items()
            ],
            "responses": {
                "200": {"description": "done", "content": {verb.media: _content(verb)}},
                "401": _PROBLEM,
                "404": _PROBLEM,
                "409": _PROBLEM,
                "422": _PROBLEM,
            },
        }
        if verb.body is not None:
            operation["requestBody"] = {"content": {"application/json": {"schema": verb.body}}}
        paths.setdefault(verb.path, {})[verb.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Understudy control plane", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "of --control-token"}},
        },
        "security": [{}, {"token": []}],
    }
