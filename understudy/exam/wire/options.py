"""Rules about options: what a request's fields are by the options that the application chose."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from understudy.exam.level import Level
from understudy.exam.wire.problem import JOINS, Client, Options, Problem
from understudy.results import JournalEntry

READ_COMMITTED: Final = 1


def _acks(options: Options) -> int:
    return -1 if options["acks"] == "all" or options["idempotent"] else int(options["acks"])


@dataclass(frozen=True)
class Wanted:
    """The value of a request's field that follows from an option, since a version of the API."""

    api: str
    field: str
    value: Callable[[Options], Any]
    level: Level = Level.MUST
    since: int = 0
    when: Callable[[Options], bool] = lambda _options: True
    only: Callable[[JournalEntry], bool] = lambda _entry: True


def _option(name: str) -> Callable[[Options], Any]:
    return lambda options: options[name]


def is_transactional(options: Options) -> bool:
    """Return whether a producer has a transactional id."""
    return bool(options["transactional_id"])


def _committed(options: Options) -> bool:
    return bool(options["isolation"] == "read_committed")


def _isolation(options: Options) -> int:
    return READ_COMMITTED if _committed(options) else 0


def _in_group(options: Options) -> bool:
    """Return whether the application asked for a group: a library that reads in groups only makes one without."""
    return options["group"] is not None


def _joins(entry: JournalEntry) -> bool:
    return bool(entry.request.get("member_epoch") == JOINS)


def _has_id(entry: JournalEntry) -> bool:
    """Return whether a request has a transactional id: a client may also get a producer id that it does not use."""
    return bool(entry.request.get("transactional_id"))


STATIC_SINCE: Final = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}
"""API -> the version since which a member sends its instance id (KIP-345)."""
_ID, _INSTANCE = _option("transactional_id"), _option("instance_id")
WANTED: Final[Mapping[str, Sequence[Wanted]]] = {
    "producer": (
        Wanted("Produce", "acks", _acks),
        Wanted("Produce", "transactional_id", _ID, since=3),
        Wanted("InitProducerId", "transactional_id", _ID, only=_has_id),
        Wanted("InitProducerId", "transaction_timeout_ms", _option("transaction_timeout_ms"), when=is_transactional),
        Wanted("TxnOffsetCommit", "transactional_id", _ID),
        Wanted("AddOffsetsToTxn", "transactional_id", _ID),
        Wanted("EndTxn", "transactional_id", _ID),
    ),
    "consumer": (
        Wanted("Fetch", "isolation_level", _isolation, since=4),
        Wanted("ListOffsets", "isolation_level", _isolation, Level.SHOULD, since=2),
        Wanted("OffsetFetch", "require_stable", lambda _options: True, Level.SHOULD, since=7, when=_committed),
        Wanted("JoinGroup", "session_timeout_ms", _option("session_timeout_ms")),
        *(Wanted(api, "group_id", _option("group"), when=_in_group) for api in STATIC_SINCE),
        *(
            # With KIP-848 its epoch fences a static member.
            Wanted(
                api, "group_instance_id", _INSTANCE, since=since, when=lambda options: options["protocol"] == "classic"
            )
            for api, since in STATIC_SINCE.items()
        ),
        Wanted("LeaveGroup", "group_id", _option("group"), when=_in_group),
        Wanted("ConsumerGroupHeartbeat", "group_id", _option("group"), when=_in_group),
        Wanted("ConsumerGroupHeartbeat", "instance_id", _INSTANCE, only=_joins),
    ),
    "share_consumer": (
        Wanted("ShareGroupHeartbeat", "group_id", _option("group")),
        Wanted("ShareFetch", "group_id", _option("group")),
        Wanted("ShareAcknowledge", "group_id", _option("group")),
    ),
}


def fields(client: Client, entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return fields that differ from what the application asked for."""
    for wanted in WANTED[client.kind]:
        if not wanted.when(client.options):
            continue
        value = wanted.value(client.options)
        for entry in entries:
            if entry.api == wanted.api and entry.version >= wanted.since and entry.request and wanted.only(entry):
                sent = entry.request.get(wanted.field)
                if (sent or None) != (value or None):
                    yield Problem(entry, f"{wanted.field} is {sent!r}, where the application asked for {value!r}",
                                  wanted.level, habit=wanted.level is not Level.MUST)  # fmt: skip


def commits(client: Client, entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return commits of a consumer that is not to commit by itself."""
    if client.kind != "consumer" or not _in_group(client.options):
        return
    if not client.options["auto_commit"] and "commit_offsets" not in client.commands:
        for entry in entries:
            if entry.api == "OffsetCommit":
                yield Problem(entry, "the application has not asked for a commit, and disabled automatic ones",
                              Level.SHOULD, habit=True)  # fmt: skip
