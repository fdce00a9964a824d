"""Python callables in the place of classes that a Kafka broker loads: policies, principals, quotas, assignors ...

A setting such as ``create.topic.policy.class.name`` may name a callable as ``module:attribute``, the notation of entry
points, which cannot be the name of a class. Modules are imported from the server's Python path, then from its working
directory. A callable gets one object with the fields of Kafka's interface, in Python's types, and returns its decision;
an exception is what an unexpected one is in Kafka: UNKNOWN_SERVER_ERROR. It runs on the event loop and must not block.
"""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from broker.logs import Logger
from broker.settings.broker_settings import BrokerSettings
from control_api.plugins import PRINCIPAL_BUILDER, is_reference
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError

_log = Logger(__name__)


class PluginError(Exception):
    """A reference cannot be loaded; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class NewTopicRequest:
    """A topic to create, as a policy gets it (``CreateTopicPolicy.RequestMetadata``).

    Counts are those after defaults. They are None if the request assigns replicas, else ``replicas_assignments`` is.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlteredConfigsRequest:
    """Altered configs of a resource, as a policy gets them (``AlterConfigPolicy.RequestMetadata``).

    ``configs`` has the keys of the request with their new values; None for a key that is deleted.
    """

    resource_type: str
    resource_name: str
    configs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class QuotaRequest:
    """A client whose quota is wanted (``ClientQuotaCallback.quotaLimit``).

    ``quota_type`` is PRODUCE or FETCH (bytes/s), REQUEST (percent) or CONTROLLER_MUTATION (partitions/s).
    """

    quota_type: str
    user: str
    client_id: str


@dataclass(frozen=True, slots=True)
class AuthenticationRequest:
    """How a client has authenticated (``AuthenticationContext``).

    ``security_protocol`` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. ``name`` is the user's, or the distinguished
    name in the client's certificate; None without one. ``mechanism`` is None without SASL.
    """

    security_protocol: str
    listener: str
    client_address: str
    name: str | None = None
    mechanism: str | None = None


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """One action that an authorizer decides on, such as READ on TOPIC orders (``Authorizer.authorize``)."""

    principal: str
    host: str
    operation: str
    resource_type: str
    resource_name: str


@cache
def load(reference: str) -> Callable[[Any], Any]:
    """Import a callable by its reference.

    Raises:
        PluginError: it cannot be imported, or is not callable.
    """
    module, _, attribute = reference.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # behind everything else: a user's package named `broker` does not hide ours
    try:
        target = attrgetter(attribute)(importlib.import_module(module))
    except Exception as error:
        raise PluginError(f"{reference} cannot be imported from {here} or the Python path: {error}") from error
    if not callable(target):
        raise PluginError(f"{reference} is not callable")
    return target  # type: ignore[no-any-return]


def call(reference: str, request: object) -> Any:
    """Ask a callable.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if it fails.
    """
    try:
        return load(reference)(request)
    except Exception as error:
        _log.warning("plugin failed", plugin=reference, error=repr(error))
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def principal_builder(settings: BrokerSettings, listener: str) -> str | None:
    """Return the reference of a listener's principal builder, as the listener was opened; None for Kafka's own."""
    reference = settings.as_opened(listener, PRINCIPAL_BUILDER)
    return reference if isinstance(reference, str) and is_reference(reference) else None


def build_principal(reference: str, request: AuthenticationRequest) -> str:
    """Ask a principal builder, which returns a principal such as ``User:alice``.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if it fails, or returns anything else.
    """
    principal = call(reference, request)
    if not isinstance(principal, str) or ":" not in principal:
        _log.warning("plugin failed", plugin=reference, error=f"{principal!r} is not a principal, such as User:alice")
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return principal


def enforce(reference: str, request: NewTopicRequest | AlteredConfigsRequest) -> None:
    """Ask a policy, which returns None or the message of a refusal.

    Raises:
        KafkaError: POLICY_VIOLATION with the policy's message, UNKNOWN_SERVER_ERROR if it fails.
    """
    message = call(reference, request)
    if message is not None:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, str(message))
