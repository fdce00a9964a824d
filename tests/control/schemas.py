"""Answers of the control plane, held against its own OpenAPI document."""

import functools
import re
from typing import Any

from jsonschema import Draft202012Validator

from broker.control.openapi import document
from control_api.verb import Verb
from control_api.verbs import VERBS

DOCUMENT = document()


@functools.cache
def validator(name: str) -> Draft202012Validator:
    """Of a schema of the document's components."""
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]})


@functools.cache
def verb_of(method: str, path: str) -> Verb | None:
    """The verb that a request is for, if it is one."""
    pathless = path.partition("?")[0]
    return next(
        (
            verb
            for verb in VERBS
            if verb.method == method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", verb.path), pathless)
        ),
        None,
    )


def check(method: str, path: str, answer: Any) -> None:
    """Fail if an answer does not match the document."""
    verb = verb_of(method, path)
    if verb is not None and verb.answer:
        content = DOCUMENT["paths"][verb.path][method.lower()]["responses"][str(verb.status)]["content"][verb.media]
        validator(content["schema"]["$ref"].rpartition("/")[2]).validate(answer)


def check_problem(problem: Any) -> None:
    """Fail where a problem is none."""
    validator("Problem").validate(problem)
