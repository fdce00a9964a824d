"""Settings that may name Python callables where Kafka loads a class; only a server's own options may do so."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

CREATE_TOPIC_POLICY = "create.topic.policy.class.name"
ALTER_CONFIG_POLICY = "alter.config.policy.class.name"
AUTHORIZER = "authorizer.class.name"
QUOTA_CALLBACK = "client.quota.callback.class"
PRINCIPAL_BUILDER = "principal.builder.class"
CONSUMER_ASSIGNORS = "group.consumer.assignors"
PLUGIN_SETTINGS = frozenset({CREATE_TOPIC_POLICY, ALTER_CONFIG_POLICY, AUTHORIZER, QUOTA_CALLBACK, PRINCIPAL_BUILDER})
"""The settings whose value may be one reference; the elements of CONSUMER_ASSIGNORS may be some."""

_REFERENCE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def is_reference(text: str | None) -> TypeGuard[str]:
    """Whether a value is ``module:attribute``, the notation of entry points; no class of Java has such a name."""
    return text is not None and _REFERENCE.fullmatch(text) is not None


def name_of_reference(reference: str) -> str:
    """Return the name under which clients know an assignor: that of its attribute."""
    return reference.rpartition(":")[2]


def references(settings: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the settings that name Python callables, with each reference; values are texts, or lists of them."""
    named = {name: (value,) for name, value in settings.items() if name in PLUGIN_SETTINGS}
    assignors = settings.get(CONSUMER_ASSIGNORS, ())
    listed = assignors.split(",") if isinstance(assignors, str) else assignors
    if isinstance(listed, Sequence):
        named[CONSUMER_ASSIGNORS] = tuple(listed)
    return [
        (name, str(each).strip())
        for name, values in sorted(named.items())
        for each in values
        if is_reference(str(each).strip())
    ]
