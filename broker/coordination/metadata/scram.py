"""SCRAM credentials: Alter- and DescribeUserScramCredentials (core G.11, KIP-554).

After Kafka's ``ScramControlManager``. The handlers check authorization.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.coordination.metadata.image import ClusterImage
from broker.sasl.scram import LEAST_ITERATIONS, MECHANISMS
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata_security import RemoveUserScramCredentialRecord, UserScramCredentialRecord

MOST_ITERATIONS = 16_384
Answers = dict[str, KafkaError | None]
"""By user, in the order in which they were named first."""


def alter(
    image: ClusterImage,
    deletions: Iterable[tuple[str, int]],
    upsertions: Iterable[UserScramCredentialRecord],
) -> tuple[Answers, list[Any]]:
    """Each user's error or ``None``, and the records. A user who is named twice keeps what there is."""
    answers: Answers = {}
    records: dict[str, Any] = {}
    for name, mechanism in deletions:
        problem = _of_name(name, mechanism)
        if problem is None and (name, mechanism) not in image.scram:
            text = "Attempt to delete a user credential that does not exist"
            problem = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
        _note(name, RemoveUserScramCredentialRecord(name, mechanism), problem, answers, records)
    for wanted in upsertions:
        problem = _of_name(wanted.name, wanted.mechanism) or _of_iterations(wanted.iterations)
        if problem is None and not wanted.stored_key:
            problem = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Java's SecretKeySpec refuses an empty key
        _note(wanted.name, wanted, problem, answers, records)
    return answers, list(records.values())


def _note(name: str, record: Any, problem: KafkaError | None, answers: Answers, records: dict[str, Any]) -> None:
    if name in answers:
        records.pop(name, None)
        if answers[name] is None:
            text = "A user credential cannot be altered twice in the same request"
            answers[name] = KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
        return
    answers[name] = problem
    if problem is None:
        records[name] = record


def _of_name(name: str, mechanism: int) -> KafkaError | None:
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
    """The credentials of the named users, or of all users if none is named, by user."""
    stored: dict[str, list[UserScramCredentialRecord]] = {}
    for (name, _), record in sorted(image.scram.items()):
        stored.setdefault(name, []).append(record)
    if not names:
        return stored
    found: dict[str, list[UserScramCredentialRecord] | KafkaError] = {}
    for name in names:
        if name in found:
            text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            found[name] = KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
        elif name in stored:
            found[name] = stored[name]
        else:
            text = f"Attempt to describe a user credential that does not exist: {name}"
            found[name] = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return found
