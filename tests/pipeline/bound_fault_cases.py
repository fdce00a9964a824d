"""Plants: bounds of logs that the log itself, or what was sent later, contradicts."""

from tests.pipeline.journal_faults import answer
from tests.pipeline.journal_lines import Wiring


@answer("bound-order")
def watermark_of_the_future(wiring: Wiring, name: str) -> int:
    """Records that are sent afterwards lie below the high watermark."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    wire.append(log, crc=711)
    fetch_id = wire.fetch(name, 0, [(0, 2)], stable=5)
    wire.append(log, crc=712)
    return fetch_id


@answer("stable-answer")
def stable_within_a_transaction(wiring: Wiring, name: str) -> int:
    """The transaction has no marker yet, and the last stable offset is that of its end."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    log.data(3, producer=713, transactional=True)
    fetch_id = wire.fetch(name, 3, stable=3)
    wire.fetch(name, 3, stable=3)
    log.marker(713, 0, committed=True)
    return fetch_id
