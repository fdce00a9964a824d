"""Decisions of AlterUserScramCredentials and DescribeUserScramCredentials (core G.11, KIP-554).

After Kafka's ``ScramControlManager``. The handlers check authorization.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.coordination.metadata.image import ClusterImage
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_order
from protocol.log_records.metadata_security import RemoveUserScramCredentialRecord, UserScramCredentialRecord

MECHANISMS: Mapping[str, int] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Name -> the number of the mechanism in messages and records."""
LEAST_ITERATIONS = 4096  # as RFC 5802 demands (core G.11)
MOST_ITERATIONS = 16_384
"""Other numbers of iterations are refused with UNACCEPTABLE_CREDENTIAL (core G.11)."""
Answers = dict[str, KafkaError | None]
"""User -> error or ``None``: deleted, then upserted, then refused users, each in the order of Kafka's map."""


def alter(
    image: ClusterImage,
    deletions: Iterable[tuple[str, int]],
    upsertions: Iterable[UserScramCredentialRecord],
) -> tuple[Answers, list[Any]]:
    """Return each user's error or ``None``, and the records. A user in the request twice is refused."""
    refused: dict[str, KafkaError | None] = {}
    deleted: dict[str, Any] = {}
    upserted: dict[str, Any] = {}

    def note(name: str, record: Any, problem: KafkaError | None, accepted: dict[str, Any]) -> None:
        if name in refused:
            return
        if (deleted.pop(name, None) or upserted.pop(name, None)) is not None:
            text = "A user credential cannot be altered twice in the same request"
            refused[name] = KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
        elif problem is not None:
            refused[name] = problem
        else:
            accepted[name] = record

    for name, mechanism in deletions:
        problem = _of_name(name, mechanism)
        if problem is None and (name, mechanism) not in image.scram:
            text = "Attempt to delete a user credential that does not exist"
            problem = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
        note(name, RemoveUserScramCredentialRecord(name, mechanism), problem, deleted)
    for wanted in upsertions:
        problem = _of_name(wanted.name, wanted.mechanism) or _of_iterations(wanted.iterations)
        note(wanted.name, wanted, problem, upserted)
    for name in [name for name, wanted in upserted.items() if not wanted.stored_key]:
        del upserted[name]
        refused[name] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # thrown by Java's SecretKeySpec after all checks
    records = [each[name] for each in (deleted, upserted) for name in _in_map(each)]
    answers: Answers = {record.name: None for record in records}
    answers.update((name, refused[name]) for name in _in_map(refused))
    return answers, records


def _in_map(names: Iterable[str]) -> list[str]:
    """Return names in the order of Kafka's map."""
    return table_order(list(names), string_hash)


def _of_name(name: str, mechanism: int) -> KafkaError | None:
    # The name before the mechanism: core G.11.
    if not name:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in MECHANISMS.values():
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return None


def _of_iterations(iterations: int) -> KafkaError | None:
    if iterations < LEAST_ITERATIONS:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > MOST_ITERATIONS:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def describe(image: ClusterImage, names: Sequence[str]) -> Mapping[str, list[UserScramCredentialRecord] | KafkaError]:
    """Return the credentials of the named users, or of all users if none is named, in the order of Kafka's map."""
    stored: dict[str, list[UserScramCredentialRecord]] = {}
    for (name, _), record in sorted(image.scram.items(), key=lambda each: each[0][1]):
        stored.setdefault(name, []).append(record)
    times = Counter(names)
    return {name: _described(name, times[name], stored) for name in _in_map(times or stored)}


def _described(
    name: str, times: int, stored: Mapping[str, list[UserScramCredentialRecord]]
) -> list[UserScramCredentialRecord] | KafkaError:
    # Twice before missing: the controller counts names before it looks them up (core G.11).
    if times > 1:
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
    if name not in stored:
        text = f"Attempt to describe a user credential that does not exist: {name}"
        return KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return stored[name]
