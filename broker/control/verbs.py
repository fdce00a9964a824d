"""Registry of the functions that implement the verbs of ``control_api``.

``@answers("clock advance")`` registers the function. It takes the request, then the body and the query if its row has
them, and returns the row's answer, or a Response. A module is imported at the first call of one of its verbs, because
dataclasses are slow to create and would delay the server's start.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, TypeVar

from control_api.verb import Verb
from control_api.verbs import BY_NAME

Function = Callable[..., Awaitable[Any]]
F = TypeVar("F", bound=Function)
_FUNCTIONS: dict[str, Function] = {}
_MODULES = {
    "health": "cluster",
    "reset": "cluster",
    "retention": "cluster",
    "compaction": "cluster",
    "controllers": "brokers",
    "partitions": "topics",
    "leader": "topics",
    "isr": "topics",
    "acls": "security",
    "quotas": "security",
    "producers forget": "topics",
    "transactions history": "transaction_history",
    "transactions why": "explain.transaction",
    "producers why": "explain.producer",
    "groups why": "explain.group",
    "groups reset-offsets": "group_offsets",
    "topics configure": "topic_settings",
}
"""Verb or group of verbs -> the module of its functions, if its name differs."""


def answers(verb: str) -> Callable[[F], F]:
    """Register the decorated function for a verb."""
    assert verb in BY_NAME, verb

    def register(function: F) -> F:
        _FUNCTIONS[verb] = function
        return function

    return register


def function_of(verb: Verb) -> Function:
    """Return the function of a verb, importing its module if necessary."""
    if verb.name not in _FUNCTIONS:
        import_module(module_of(verb))
    return _FUNCTIONS[verb.name]


def module_of(verb: Verb) -> str:
    """Return the name of the module that registers the function of a verb."""
    group = verb.name.partition(" ")[0]
    return f"broker.control.{_MODULES.get(verb.name) or _MODULES.get(group, group)}"
