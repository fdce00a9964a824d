"""Compare the responses that clients got with the records that are in the logs after a run."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from simulator.history import History, Place, Sent, Transaction

Log = Sequence[tuple[int, bytes]]
"""Offsets and values of a partition's committed records, in order."""


def check(history: History, final: Mapping[Place, Log]) -> None:
    """Check a run; ``final`` is what a ``read_committed`` reader finds in the logs at the end."""
    there: dict[bytes, list[tuple[Place, int]]] = defaultdict(list)
    for place, log in final.items():
        for offset, value in log:
            there[value].append((place, offset))
    _check_records(history, there)
    _check_transactions(history, there)
    _check_order(history, final)
    _check_readers(history, final)


def check_copies(
    history: History, final: Mapping[Place, Log], offsets: Mapping[Place, int], source: str, target: str
) -> None:
    """Check the copiers: each record of the source below the committed offsets was copied once, and no other one."""
    copies: Counter[bytes] = Counter()
    for place, log in final.items():
        if place[0] == target:
            copies.update(value.partition(b"|")[0] for _, value in log)
    tried: dict[bytes, list[Transaction | None]] = defaultdict(list)
    for sent in history.records.values():
        if sent.place[0] == target:
            tried[sent.value.partition(b"|")[0]].append(sent.transaction)
    for place, log in final.items():
        if place[0] != source:
            continue
        for offset, _ in log:
            name = b"%s-%d/%d" % (source.encode(), place[1], offset)
            count = copies.pop(name, 0)
            wanted = 1 if offset < offsets[place] else 0
            if count != wanted:
                history.violate(
                    f"{source}-{place[1]} offset {offset} was copied {count} times, and {offsets[place]} is committed",
                    *tried[name],
                )
    for name in copies:
        history.violate(f"the copy {name!r} has no record in the source")


def _check_records(history: History, there: Mapping[bytes, list[tuple[Place, int]]]) -> None:
    for value in there:
        if value not in history.records:
            history.violate(f"{value!r} is in a log, but no client sent it")
    for sent in history.records.values():
        places = there.get(sent.value, [])
        if len(places) > 1:
            history.violate(f"{_shown(sent)} is in the log {len(places)} times: {places}")
        elif places:
            _check_place(history, sent, *places[0])
        if sent.transaction is None and sent.fate == "acked" and not places:
            history.violate(f"{_shown(sent)} was acknowledged, but is lost")
        if sent.transaction is None and sent.fate == "refused" and places:
            history.violate(f"{_shown(sent)} was refused, but is in the log")


def _check_place(history: History, sent: Sent, place: Place, offset: int) -> None:
    if place != sent.place:
        history.violate(f"{_shown(sent)} is in {place[0]}-{place[1]}")
    if sent.offset >= 0 and offset != sent.offset:
        history.violate(f"{_shown(sent)} was acknowledged at offset {sent.offset}, but is at {offset}")


def _check_transactions(history: History, there: Mapping[bytes, list[tuple[Place, int]]]) -> None:
    records = defaultdict(list)
    for sent in history.records.values():
        if sent.transaction is not None:
            records[sent.transaction].append(sent)
    for transaction in history.transactions:
        sure = [each for each in records[transaction] if each.fate == "acked"]
        visible = [each for each in records[transaction] if each.value in there]
        lost = [each for each in sure if each.value not in there]
        outcome = transaction.outcome
        if outcome == "open" and transaction.ending is not True:
            outcome = "aborted"  # a commit was never requested
        if outcome == "aborted" and visible:
            promise = f"{transaction} was aborted, and {_shown(visible[0])} is read as committed"
            history.violate(promise, transaction)
        if outcome == "committed" and lost:
            history.violate(f"{transaction} was committed, and {_shown(lost[0])} is lost", transaction)
        if outcome == "open" and visible and lost:
            promise = f"{transaction} is torn: {_shown(visible[0])} is in the log, {_shown(lost[0])} is not"
            history.violate(promise, transaction)


def _check_order(history: History, final: Mapping[Place, Log]) -> None:
    for place, log in final.items():
        last: Counter[str] = Counter()
        for offset, value in log:
            sent = history.records.get(value)
            if sent is None:
                continue
            if sent.order <= last[sent.producer]:
                history.violate(f"{_shown(sent)} is at {place[0]}-{place[1]} offset {offset}, out of order")
            last[sent.producer] = sent.order


def _check_readers(history: History, final: Mapping[Place, Log]) -> None:
    """Check that each reader saw a contiguous piece of the final log."""
    for reader, places in history.seen.items():
        for place, seen in places.items():
            log = final[place]
            known = {offset: index for index, (offset, _) in enumerate(log)}
            begin = known.get(seen[0][0])
            if begin is None:
                history.violate(f"{reader} read {place[0]}-{place[1]} offset {seen[0][0]}, which is not in the log")
            elif seen != list(log[begin : begin + len(seen)]):
                both = zip(seen, log[begin:], strict=False)
                index = next((i for i, (one, other) in enumerate(both) if one != other), len(log) - begin)
                was = seen[index] if index < len(seen) else None
                at = begin + index
                history.violate(
                    f"{reader} read {was} in {place[0]}-{place[1]}, where {log[at] if at < len(log) else None} is"
                )


def _shown(sent: Sent) -> str:
    return f"{sent.value.decode()} of {sent.place[0]}-{sent.place[1]}"
