"""Builds the OpenAPI document from the table of verbs."""

from functools import cache
from typing import Any

from control_api.fields import Kind, fields_of
from control_api.schema import Schema, Schemas
from control_api.verb import PLACES, Verb
from control_api.verbs import VERBS

PROBLEM: Schema = {
    "type": "object",
    "description": "RFC 9457",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what is wrong, and what to send instead"},
        "field": {"type": "string", "description": "the field of the body or query that is wrong"},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": False,
}


@cache
def document() -> dict[str, Any]:
    """Return the document: all verbs, with their parameters, bodies, answers and errors."""
    schemas = Schemas()
    schemas.named["Problem"] = PROBLEM
    paths: dict[str, dict[str, Any]] = {}
    for verb in VERBS:
        paths.setdefault(verb.path, {})[verb.method.lower()] = _operation(verb, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Understudy control plane", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": schemas.named,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "of --control-token"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(verb: Verb, schemas: Schemas) -> dict[str, Any]:
    query = fields_of(verb.query) if verb.query else {}
    content = {"schema": schemas.answer(verb.answer_type)} if verb.answer else {}
    problem = {
        "description": "a problem",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    operation: dict[str, Any] = {
        "operationId": verb.name.replace(" ", "_").replace("-", "_"),
        "summary": f"{verb.help[0].upper()}{verb.help[1:]}.",
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": schemas.parameter(Kind(PLACES.get(name, str)))}
                for name in verb.places
            ),
            *(
                {"name": name, "in": "query", "required": field.required, "schema": schemas.parameter(field.kind)}
                for name, field in query.items()
            ),
        ],
        "responses": {
            str(verb.status): {"description": "done", "content": {verb.media: content}},
            **dict.fromkeys(("401", "404", "409", "422"), problem),
        },
    }
    if verb.body:
        body: dict[str, Any] = {"schema": schemas.body(verb.body)}
        if verb.example is not None:
            body["example"] = verb.document(verb.example)
        operation["requestBody"] = {"content": {"application/json": body}}
    return operation
