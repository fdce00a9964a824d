"""Verbs about transactional ids: their state, and holding, releasing and aborting their transactions."""

from broker.control.coordinators import group_coordinators, transaction_coordinator, transaction_coordinators
from broker.control.explain.transaction import timeline_of, unused
from broker.control.problems import Problem, conflict, unprocessable
from broker.control.request import Asked
from broker.control.verbs import answers
from broker.coordination.coordinators import TransactionCoordinator
from broker.coordination.runtime import State
from broker.coordination.transaction.listing import describe
from broker.partitions.transactions.markers import Step
from broker.request.node import Node
from broker.steering.journal.entries import software
from control_api.answers import transactions as answer
from control_api.transactions import Held, Hold, ProducerEpoch, Released
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TransactionRecord, TransactionState

Found = tuple[Node, TransactionCoordinator]


def _named(asked: Asked) -> tuple[str, Found]:
    """Return the transactional id in the path, and its coordinator. Raises Problem 404 or 409."""
    name = asked.names["transactional_id"]
    found = transaction_coordinator(asked.cluster, name)
    if found is None:
        raise unused(asked, name)
    _check_loaded(found[1])
    if name not in found[1].machine.transactions:
        raise unused(asked, name)
    return name, found


def _check_loaded(runtime: TransactionCoordinator) -> None:
    if runtime.state is State.LOADING:
        raise conflict("its coordinator is loading; advance the clock, or wait")


@answers("transactions list")
async def read_all(asked: Asked) -> answer.Transactions:
    """List all transactional ids with their transactions, by name."""
    found = [
        (record, node, runtime)
        for node, runtime in transaction_coordinators(asked.cluster)
        for record in runtime.machine.transactions.values()
    ]
    found.sort(key=lambda each: str(each[0].transactional_id))
    return {"transactions": [_transaction(asked, *each, detail=False) for each in found]}


@answers("transactions show")
async def read(asked: Asked) -> answer.Transaction:
    """Show one transactional id: state, epochs, partitions, pending offsets, deadline, hold, timeline."""
    name, (node, runtime) = _named(asked)
    return _transaction(asked, runtime.machine.transactions[name], node, runtime)


def _transaction(
    asked: Asked, record: TransactionRecord, node: Node, runtime: TransactionCoordinator, *, detail: bool = True
) -> answer.Transaction:
    name = record.transactional_id
    _, partitions = describe(runtime.machine, name)
    held = asked.cluster.markers.holds.held(name)
    history = asked.cluster.transaction_timelines.of(name)
    ongoing = record.state is TransactionState.ONGOING
    last = next((event for event in reversed(history.events) if event.client_id is not None), None)
    number = None if last is None else last.connection
    client = None if number is None else asked.cluster.journal.connection(number)
    return answer.Transaction(
        transactional_id=name,
        state=record.state.text,
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        last_producer_epoch=record.last_epoch,
        timeout_ms=record.timeout_ms,
        deadline_ms=record.start_ms + record.timeout_ms if ongoing else None,
        coordinator=node.id,
        partitions=tuple(f"{topic}-{index}" for topic, index in sorted(partitions)),
        pending_offsets=_pending_offsets(asked, record.producer_id),
        held_at=None if held is None else held[0].value,
        timeline=timeline_of(history) if detail else (),
        forgotten=history.forgotten,
        stopped=held is not None and held[1],
        client_id=None if last is None else last.client_id,
        connection=number,
        client=None if client is None else f"{client.client_host}:{client.client_port}",
        software=software(client),
    )


def _pending_offsets(asked: Asked, producer_id: int) -> dict[str, dict[str, int]]:
    """Return group -> partition -> offset of the pending transactional offset commits."""
    found: dict[str, dict[str, int]] = {}
    for _, runtime in group_coordinators(asked.cluster):
        for (group, topic, partition), offset in runtime.machine.offsets.pending_of(producer_id):
            found.setdefault(group, {})[f"{topic}-{partition}"] = offset.commit.offset
    return found


# --- steering --------------------------------------------------------------------------------------------------------


@answers("transactions hold")
async def hold(asked: Asked, body: Hold) -> Held:
    """Hold commits and aborts of an id at a step, from now on; an id may be held before its first use."""
    name, at, after = asked.names["transactional_id"], body["at"], body.get("after_markers", 0)
    if "after_markers" in body and at != Step.MARKERS.value:
        raise unprocessable("'after_markers' needs 'at': 'markers'", "after_markers")
    asked.cluster.markers.holds.hold(name, Step(at), after)
    return {"transactional_id": name, "held_at": at, "after_markers": after}


@answers("transactions release")
async def release(asked: Asked) -> Released:
    """Release a held id: its transaction continues from the step where it was held."""
    name = asked.names["transactional_id"]
    if not asked.cluster.markers.holds.release(name):
        raise conflict(f"transactional id {name!r} is not held; hold it with POST /v1/transactions/{name}/hold")
    return {"transactional_id": name, "held_at": None}


@answers("transactions abort")
async def abort(asked: Asked) -> answer.Transaction:
    """Abort the open transaction as its timeout would: the producer is fenced."""
    name, (_, runtime) = _named(asked)
    try:
        await runtime.ask(lambda machine, now_ms, to: machine.abort(name, now_ms, to))
    except KafkaError as error:
        raise _refused(error) from error
    return await read(asked)


@answers("transactions set-epoch")
async def set_epoch(asked: Asked, body: ProducerEpoch) -> answer.Transaction:
    """Set the producer epoch of an id, for tests of epoch exhaustion."""
    name, (_, runtime) = _named(asked)
    epoch = body["epoch"]
    try:
        await runtime.ask(lambda machine, now_ms, to: machine.set_epoch(name, epoch, now_ms, to))
    except KafkaError as error:
        raise _refused(error) from error
    return await read(asked)


def _refused(error: KafkaError) -> Problem:
    details = {
        ErrorCode.CONCURRENT_TRANSACTIONS: "markers of its last transaction are still being written; release or wait",
        ErrorCode.INVALID_TXN_STATE: "it has no open transaction",
    }
    return conflict(f"{error.code.name}: {details.get(error.code, error.message or 'not possible now')}")
