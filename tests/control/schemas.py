"""Answers of the control plane, held against its own OpenAPI document."""

import functools
import re
from typing import Any

from jsonschema import Draft202012Validator

from broker.control.openapi import document
from broker.control.verbs import VERBS

DOCUMENT = document(VERBS)


@functools.cache
def validator(name: str) -> Draft202012Validator:
    """Of a schema of the document's components."""
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]})


@functools.cache
def answer_of(method: str, path: str) -> str:
    """The name of the schema of a verb's answer; empty where it has none."""
    found = [
        verb.answer
        for verb in VERBS
        if verb.method == method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", verb.path), path.partition("?")[0])
    ]
    return found[0] if len(found) == 1 else ""


def check(method: str, path: str, answer: Any) -> None:
    """Fail where an answer is not what the document says."""
    if name := answer_of(method, path):
        validator(name).validate(answer)


def check_problem(problem: Any) -> None:
    """Fail where a problem is none."""
    validator("Problem").validate(problem)
