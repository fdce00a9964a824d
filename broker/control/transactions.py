"""Verbs about transactional ids: what they are doing, and stopping them at a step of it."""

from typing import Any

from broker.control.asked import Asked
from broker.control.coordinators import coordinator_of, runtimes
from broker.control.problems import Problem, conflict, unprocessable
from broker.control.why import told, unused
from broker.coordination.runtime import Runtime, State
from broker.coordination.transaction.listing import describe
from broker.coordination.transaction.machine import TransactionMachine
from broker.markers import Step
from broker.node import GROUP_TOPIC, TRANSACTION_TOPIC, Node
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TransactionRecord, TransactionState

HOLD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "at": {"enum": [step.value for step in Step]},
        "after_markers": {"type": "integer", "minimum": 0, "default": 0, "description": "with markers: after so many"},
    },
    "required": ["at"],
    "additionalProperties": False,
}
EPOCH: dict[str, Any] = {
    "type": "object",
    "properties": {"epoch": {"type": "integer", "minimum": 0, "maximum": 32_767}},
    "required": ["epoch"],
    "additionalProperties": False,
}
Found = tuple[Node, "Runtime[TransactionMachine]"]


def _named(asked: Asked) -> tuple[str, Found]:
    """The transactional id in the path, and who coordinates it. Raises Problem 404 or 409."""
    name = asked.names["transactional_id"]
    found = coordinator_of(asked.cluster, TRANSACTION_TOPIC, name)
    if found is None:
        raise unused(asked, name)
    _check_loaded(found[1])
    if name not in found[1].machine.transactions:
        raise unused(asked, name)
    return name, found


def _check_loaded(runtime: Runtime[Any]) -> None:
    if runtime.state is State.LOADING:
        raise conflict("its coordinator is loading; push the clock, or wait")


async def read_all(asked: Asked) -> dict[str, Any]:
    """All transactional ids that are known, with their transactions, by name."""
    found = [
        (record, node, runtime)
        for node, runtime in runtimes(asked.cluster, TRANSACTION_TOPIC)
        for record in runtime.machine.transactions.values()
    ]
    found.sort(key=lambda each: str(each[0].transactional_id))
    return {"transactions": [_told(asked, *each) for each in found]}


async def read(asked: Asked) -> dict[str, Any]:
    """One transactional id: state, epochs, partitions, pending offsets, deadline, where it is held, its timeline."""
    name, (node, runtime) = _named(asked)
    found = _told(asked, runtime.machine.transactions[name], node, runtime)
    return {**found, "timeline": [told(event) for event in asked.cluster.timelines.of(name)]}


def _told(asked: Asked, record: TransactionRecord, node: Node, runtime: Runtime[TransactionMachine]) -> dict[str, Any]:
    name = record.transactional_id
    _, partitions = describe(runtime.machine, name)
    held = asked.cluster.markers.holds.held(name)
    ongoing = record.state is TransactionState.ONGOING
    return {
        "transactional_id": name,
        "state": record.state.text,
        "producer_id": record.producer_id,
        "producer_epoch": record.producer_epoch,
        "last_producer_epoch": record.last_epoch,
        "timeout_ms": record.timeout_ms,
        "deadline_ms": record.start_ms + record.timeout_ms if ongoing else None,
        "coordinator": node.id,
        "partitions": [f"{topic}-{index}" for topic, index in sorted(partitions)],
        "pending_offsets": _pending_offsets(asked, record.producer_id),
        "held_at": None if held is None else held[0].value,
        "stopped": held is not None and held[1],
    }


def _pending_offsets(asked: Asked, producer_id: int) -> dict[str, dict[str, int]]:
    """Group -> partition -> offset, of what waits for the transaction's end."""
    found: dict[str, dict[str, int]] = {}
    for _, runtime in runtimes(asked.cluster, GROUP_TOPIC):
        for (group, topic, partition), offset in runtime.machine.offsets.pending_of(producer_id):
            found.setdefault(group, {})[f"{topic}-{partition}"] = offset.commit.offset
    return found


# --- steering --------------------------------------------------------------------------------------------------------


async def hold(asked: Asked) -> dict[str, Any]:
    """Stop commits and aborts of an id at a step, from now on; an id may be held before it is used."""
    asked.only("at", "after_markers")
    name, at = asked.names["transactional_id"], asked.body.get("at")
    if at not in [step.value for step in Step]:
        raise unprocessable(f"'at' is prepare, markers or complete, not {at!r}", "at")
    after = asked.integer("after_markers", 0)
    if "after_markers" in asked.body and at != Step.MARKERS.value:
        raise unprocessable("'after_markers' goes with 'at': 'markers' only", "after_markers")
    asked.cluster.markers.holds.hold(name, Step(at), after)
    return {"transactional_id": name, "held_at": at, "after_markers": after}


async def release(asked: Asked) -> dict[str, Any]:
    """Let an id that is held go on from where it was stopped."""
    asked.only()
    name = asked.names["transactional_id"]
    if not asked.cluster.markers.holds.release(name):
        raise conflict(f"transactional id {name!r} is not held; POST /v1/transactions/{name}/hold comes first")
    return {"transactional_id": name, "held_at": None}


async def abort(asked: Asked) -> dict[str, Any]:
    """Abort the open transaction as its timeout would: its producer is fenced."""
    asked.only()
    name, (_, runtime) = _named(asked)
    try:
        asked.cluster.timelines.steering = "aborted by the control plane"
        await runtime.ask(lambda machine, now_ms, to: machine.abort(name, now_ms, to))
    except KafkaError as error:
        raise _refused(error) from error
    finally:
        asked.cluster.timelines.steering = ""
    return await read(asked)


async def set_epoch(asked: Asked) -> dict[str, Any]:
    """Put an id at an epoch, as if its producer had come that far: the way to exhaustion is long otherwise."""
    asked.only("epoch")
    name, (_, runtime) = _named(asked)
    epoch = asked.integer("epoch")
    if epoch > 32_767:
        raise unprocessable(f"'epoch' is at most 32767, not {epoch}", "epoch")
    try:
        asked.cluster.timelines.steering = "put at another epoch by the control plane"
        await runtime.ask(lambda machine, now_ms, to: machine.set_epoch(name, epoch, now_ms, to))
    except KafkaError as error:
        raise _refused(error) from error
    finally:
        asked.cluster.timelines.steering = ""
    return await read(asked)


def _refused(error: KafkaError) -> Problem:
    words = {
        ErrorCode.CONCURRENT_TRANSACTIONS: "markers of its last transaction are still being written; release or wait",
        ErrorCode.INVALID_TXN_STATE: "it has no open transaction",
    }
    return conflict(f"{error.code.name}: {words.get(error.code, error.message or 'not now')}")
