"""Verbs about transactional ids: their state, and holding, releasing and aborting their transactions."""

from broker.control.coordinators import group_coordinators, transaction_coordinator, transaction_coordinators
from broker.control.explain.transaction import timeline_of, unused
from broker.control.problems import Problem, conflict, unprocessable
from broker.control.request import ControlRequest
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

NodeAndCoordinator = tuple[Node, TransactionCoordinator]


def _named(request: ControlRequest) -> tuple[str, NodeAndCoordinator]:
    """Return the transactional id in the path, and its coordinator. Raises Problem 404 or 409."""
    name = request.names["transactional_id"]
    node_and_coordinator = transaction_coordinator(request.cluster, name)
    if node_and_coordinator is None:
        raise unused(request, name)
    _check_loaded(node_and_coordinator[1])
    if name not in node_and_coordinator[1].machine.transactions:
        raise unused(request, name)
    return name, node_and_coordinator


def _check_loaded(coordinator: TransactionCoordinator) -> None:
    if coordinator.state is State.LOADING:
        raise conflict("its coordinator is loading; advance the clock, or wait")


@answers("transactions list")
async def read_all(request: ControlRequest) -> answer.Transactions:
    """List all transactional ids with their transactions, by name."""
    transactions = [
        (record, node, coordinator)
        for node, coordinator in transaction_coordinators(request.cluster)
        for record in coordinator.machine.transactions.values()
    ]
    transactions.sort(key=lambda each: str(each[0].transactional_id))
    return {"transactions": [_transaction(request, *each, detail=False) for each in transactions]}


@answers("transactions show")
async def read(request: ControlRequest) -> answer.Transaction:
    """Show one transactional id: state, epochs, partitions, pending offsets, deadline, hold, timeline."""
    name, (node, coordinator) = _named(request)
    return _transaction(request, coordinator.machine.transactions[name], node, coordinator)


def _transaction(
    request: ControlRequest,
    record: TransactionRecord,
    node: Node,
    coordinator: TransactionCoordinator,
    *,
    detail: bool = True,
) -> answer.Transaction:
    name = record.transactional_id
    _, partitions = describe(coordinator.machine, name)
    held = request.cluster.markers.holds.held(name)
    history = request.cluster.transaction_timelines.of(name)
    ongoing = record.state is TransactionState.ONGOING
    last = next((event for event in reversed(history.events) if event.client_id is not None), None)
    number = None if last is None else last.connection
    client = None if number is None else request.cluster.journal.connection(number)
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
        pending_offsets=_pending_offsets(request, record.producer_id),
        held_at=None if held is None else held[0].value,
        timeline=timeline_of(history) if detail else (),
        forgotten=history.forgotten,
        stopped=held is not None and held[1],
        client_id=None if last is None else last.client_id,
        connection=number,
        client=None if client is None else f"{client.client_host}:{client.client_port}",
        software=software(client),
    )


def _pending_offsets(request: ControlRequest, producer_id: int) -> dict[str, dict[str, int]]:
    """Return group -> partition -> offset of the pending transactional offset commits."""
    pending: dict[str, dict[str, int]] = {}
    for _, coordinator in group_coordinators(request.cluster):
        for (group, topic, partition), offset in coordinator.machine.offsets.pending_of(producer_id):
            pending.setdefault(group, {})[f"{topic}-{partition}"] = offset.commit.offset
    return pending


# --- steering --------------------------------------------------------------------------------------------------------


@answers("transactions hold")
async def hold(request: ControlRequest, body: Hold) -> Held:
    """Hold commits and aborts of an id at a step, from now on; an id may be held before its first use."""
    name, at, after = request.names["transactional_id"], body["at"], body.get("after_markers", 0)
    if "after_markers" in body and at != Step.MARKERS.value:
        raise unprocessable("'after_markers' needs 'at': 'markers'", "after_markers")
    request.cluster.markers.holds.hold(name, Step(at), after)
    return {"transactional_id": name, "held_at": at, "after_markers": after}


@answers("transactions release")
async def release(request: ControlRequest) -> Released:
    """Release a held id: its transaction continues from the step where it was held."""
    name = request.names["transactional_id"]
    if not request.cluster.markers.holds.release(name):
        raise conflict(f"transactional id {name!r} is not held; hold it with POST /v1/transactions/{name}/hold")
    return {"transactional_id": name, "held_at": None}


@answers("transactions abort")
async def abort(request: ControlRequest) -> answer.Transaction:
    """Abort the open transaction as its timeout would: the producer is fenced."""
    name, (_, coordinator) = _named(request)
    try:
        await coordinator.ask(lambda machine, now_ms, to: machine.abort(name, now_ms, to))
    except KafkaError as error:
        raise _refused(error) from error
    return await read(request)


@answers("transactions set-epoch")
async def set_epoch(request: ControlRequest, body: ProducerEpoch) -> answer.Transaction:
    """Set the producer epoch of an id, for tests of epoch exhaustion."""
    name, (_, coordinator) = _named(request)
    epoch = body["epoch"]
    try:
        await coordinator.ask(lambda machine, now_ms, to: machine.set_epoch(name, epoch, now_ms, to))
    except KafkaError as error:
        raise _refused(error) from error
    return await read(request)


def _refused(error: KafkaError) -> Problem:
    details = {
        ErrorCode.CONCURRENT_TRANSACTIONS: "markers of its last transaction are still being written; release or wait",
        ErrorCode.INVALID_TXN_STATE: "it has no open transaction",
    }
    return conflict(f"{error.code.name}: {details.get(error.code, error.message or 'not possible now')}")
