"""Rules about producers: batches, their producer ids, and offsets in transactions."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from understudy.exam import witnesses
from understudy.exam.level import Level
from understudy.exam.wire.options import is_transactional
from understudy.exam.wire.problem import Client, Problem, answered_us, succeeded
from understudy.results import JournalEntry


def batches(client: Client, entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return batches whose header contradicts the options, or whose producer id, epoch or sequence is wrong."""
    idempotent, transactional = client.options["idempotent"], is_transactional(client.options)
    codecs = {"none", client.options["compression"]}
    sent = list(witnesses.batches(entries))
    for entry in entries:
        if entry.api == "Produce" and entry.request and entry.request.get("timeout_ms", 1) <= 0:
            yield Problem(entry, "timeout_ms leaves no time for replication", Level.SHOULD)
    for batch in sent:
        if idempotent and batch.producer_id < 0:
            yield Problem(batch.entry, "a batch of an idempotent producer has no producer id")
        if batch.transactional != transactional:
            has = "has" if batch.transactional else "does not have"
            yield Problem(batch.entry, f"a batch {has} the transactional bit, and the producer's transactional id is "
                                       f"{client.options['transactional_id']!r}")  # fmt: skip
        if batch.compression not in codecs:
            yield Problem(batch.entry, f"a batch is compressed by {batch.compression}, "
                                       f"where the application asked for {client.options['compression']}")  # fmt: skip
    if idempotent:
        for batch, text in [*witnesses.broken_sequences(sent), *witnesses.wrong_epochs(sent)]:
            yield Problem(batch.entry, text)
        yield from producer_ids(entries, sent)


def producer_ids(entries: Sequence[JournalEntry], sent: Sequence[witnesses.Batch]) -> Iterator[Problem]:
    """Return requests with a producer id or epoch that was not granted, or after a newer one was granted and used."""
    granted: dict[int, list[tuple[int, int]]] = defaultdict(list)
    transactional = {each.producer_id for each in sent if each.transactional}
    for entry in entries:
        if entry.api in {"InitProducerId", "EndTxn"} and succeeded(entry):
            answer = entry.response or {}
            if answer.get("producer_id", -1) >= 0:
                granted[answer["producer_id"]].append((answer["producer_epoch"], answered_us(entry)))
    uses = [(each.entry, each.producer_id, each.epoch) for each in sent if each.producer_id >= 0]
    uses += [
        (entry, entry.request.get("producer_id", -1), entry.request.get("producer_epoch", -1))
        for entry in entries
        if entry.api in {"EndTxn", "TxnOffsetCommit", "AddOffsetsToTxn"} and entry.request
    ]
    for entry, producer_id, epoch in uses:
        bumps = producer_id not in transactional  # one that is only idempotent may raise its epoch itself, KIP-360
        epochs = [each for each, _ in granted.get(producer_id, ())]
        if not epochs or not (epoch in epochs or (bumps and epoch > min(epochs))):
            yield Problem(entry, f"producer id {producer_id} with epoch {epoch} was not granted to this producer")
        elif not bumps:
            newest = max(each for each, at in granted[producer_id] if at <= entry.ts_us or each == epoch)
            if newest > epoch:
                yield Problem(entry, f"epoch {epoch} is used after epoch {newest} was granted")


def offsets_in_transactions(
    entries: Sequence[JournalEntry], granted: Mapping[tuple[str, str], set[int]]
) -> Iterator[Problem]:
    """Return TxnOffsetCommit without the member and generation of the consumer (KIP-447)."""
    groups = {group for group, _ in granted}
    for entry in entries:
        if entry.api != "TxnOffsetCommit" or entry.request.get("group_id") not in groups:
            continue
        member, generation = entry.request.get("member_id") or "", entry.request.get("generation_id", -1)
        if not member or generation not in granted.get((entry.request["group_id"], member), ()):
            yield Problem(
                entry,
                f"member {member!r} and generation {generation} are not those of a member, "
                "so that the offsets of a member that was removed would not be refused",
                Level.SHOULD,
                habit=True,
            )
