"""Bytewax: counts records by key to the end of a topic, and goes on from its recovery store.

bytewax_flow.py BOOTSTRAP RECOVERY_DIR: ends where the topic ends.
"""

import sys
from datetime import timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSourceMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import run_main

brokers, recovery = sys.argv[1].split(","), Path(sys.argv[2])
if not recovery.exists():
    recovery.mkdir()
    init_db_dir(recovery, 1)


def add(state: tuple[int, int] | None, value: str) -> tuple[tuple[int, int], str]:
    """The number of the record among those with its key, and the sum of their values."""
    number, total = state or (0, 0)
    state = (number + 1, total + int(value))
    return state, f"{state[0]} {state[1]}"


def keyed(message: KafkaSourceMessage) -> tuple[str, str]:
    """Key and value as text."""
    return message.key.decode(), message.value.decode()


def message(item: tuple[str, str]) -> KafkaSinkMessage:
    """Key and value as bytes."""
    return KafkaSinkMessage(item[0].encode(), item[1].encode())


flow = Dataflow("counts")
source = kop.input("in", flow, brokers=brokers, topics=["orders"], tail=False)
counted = op.stateful_map("count", op.map("keyed", source.oks, keyed), add)
kop.output("out", op.map("message", counted, message), brokers=brokers, topic="counts")
run_main(flow, epoch_interval=timedelta(0), recovery_config=RecoveryConfig(recovery))
