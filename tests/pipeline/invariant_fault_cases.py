"""Plants: what producers do on the wire (invariants 1 to 23)."""

from tests.pipeline.journal_faults import plant
from tests.pipeline.journal_lines import Wiring


@plant("i01-version")
def version(wiring: Wiring, name: str) -> int:
    """A request in a version that no broker offered."""
    return wiring.connect(name).call("Metadata", {}, {"topics": []}, version=99)


@plant("i02-first-request")
def first_request(wiring: Wiring, name: str) -> int:
    """No greeting."""
    return wiring.connect(name, greets=False).call("Metadata", {}, {"topics": []})


@plant("i03-sequence")
def sequence(wiring: Wiring, name: str) -> int:
    """Two numbers were never sent."""
    wire = wiring.connect(name)
    wire.produce(name, who=(510, 0), sequence=0)
    return wire.produce(name, who=(510, 0), sequence=5, error="OUT_OF_ORDER_SEQUENCE_NUMBER")


@plant("i04-resend")
def resend(wiring: Wiring, name: str) -> int:
    """The same number, other bytes."""
    wire = wiring.connect(name)
    wire.produce(name, who=(511, 0), sequence=0, error="NOT_ENOUGH_REPLICAS")
    return wire.produce(name, who=(511, 0), sequence=0, crc=8)


@plant("i05-first-sequence")
def first_sequence(wiring: Wiring, name: str) -> int:
    """A new identity begins at 4."""
    wire = wiring.connect(name)
    wire.init(None, (512, 0))
    return wire.produce(name, who=(512, 0), sequence=4)


@plant("i06-epoch-back")
def epoch_back(wiring: Wiring, name: str) -> int:
    """Epoch 1, then 0."""
    wire = wiring.connect(name)
    wire.produce(name, who=(513, 1), sequence=0)
    return wire.produce(name, who=(513, 0), sequence=0, error="INVALID_PRODUCER_EPOCH")


@plant("i07-epoch-not-granted")
def epoch_not_granted(wiring: Wiring, name: str) -> int:
    """A transactional producer counts its epoch up by itself."""
    wire = wiring.connect(name)
    wire.init(name, (514, 0))
    return wire.produce(name, who=(514, 1), sequence=0, name=name)


@plant("i08-producer-fields")
def producer_fields(wiring: Wiring, name: str) -> int:
    """Idempotent with acks=1."""
    return wiring.connect(name).produce(name, who=(515, 0), sequence=0, acks=1)


@plant("i10-two-connections")
def two_connections(wiring: Wiring, name: str) -> int:
    """The second batch overtakes the first on another connection."""
    one, two = wiring.connect(name), wiring.connect(name)
    one.produce(name, who=(516, 0), sequence=0, took_us=50_000)
    return two.produce(name, who=(516, 0), sequence=3, step_us=1000)


@plant("i11-not-added")
def not_added(wiring: Wiring, name: str) -> int:
    """Records before the partition was added."""
    wire = wiring.connect(name)
    wire.init(name, (517, 0))
    return wire.produce(name, who=(517, 0), sequence=0, name=name, version=11)


@plant("i12-added-needlessly")
def added_needlessly(wiring: Wiring, name: str) -> int:
    """Adds, although writing adds."""
    wire = wiring.connect(name)
    wire.init(name, (518, 0))
    add_id = wire.add(name, (518, 0), name, 0)
    wire.produce(name, who=(518, 0), sequence=0, name=name, version=12)
    return add_id


@plant("i13-mixed-request")
def mixed_request(wiring: Wiring, name: str) -> int:
    """A transactional batch in a request that names no transactional id."""
    return wiring.connect(name).produce(name, who=(519, 0), sequence=0, transactional=True)


@plant("i14-outside-transaction")
def outside_transaction(wiring: Wiring, name: str) -> int:
    """A plain batch between those of a transaction."""
    wire = wiring.connect(name)
    wire.init(name, (520, 0))
    wire.produce(name, who=(520, 0), sequence=0, name=name)
    return wire.produce(name, who=(520, 0), sequence=3)


@plant("i15-after-end")
def after_end(wiring: Wiring, name: str) -> int:
    """Records while EndTxn is under way."""
    one, two = wiring.connect(name), wiring.connect(name)
    one.init(name, (521, 0))
    one.produce(name, who=(521, 0), sequence=0, name=name)
    one.end(name, (521, 0), took_us=50_000)
    return two.produce(name, who=(521, 0), sequence=3, name=name, step_us=1000)


@plant("i16-end-changed")
def end_changed(wiring: Wiring, name: str) -> int:
    """Commit was not answered, abort is asked."""
    wire = wiring.connect(name)
    wire.init(name, (522, 0))
    wire.produce(name, who=(522, 0), sequence=0, name=name)
    wire.end(name, (522, 0), error="CONCURRENT_TRANSACTIONS")
    return wire.end(name, (522, 0), committed=False)


@plant("i17-granted-ignored")
def granted_ignored(wiring: Wiring, name: str) -> int:
    """The next transaction under the old epoch."""
    wire = wiring.connect(name)
    wire.init(name, (523, 0))
    wire.produce(name, who=(523, 0), sequence=0, name=name)
    wire.end(name, (523, 0), granted=(523, 1), version=5)
    return wire.produce(name, who=(523, 0), sequence=3, name=name, error="INVALID_PRODUCER_EPOCH")


@plant("i18-offsets-not-added")
def offsets_not_added(wiring: Wiring, name: str) -> int:
    """Offsets of a group that was not added."""
    wire = wiring.connect(name)
    wire.init(name, (524, 0))
    commit_id = wire.commit_in_transaction(name, (524, 0), name, "", -1, name, 5, version=3)
    wire.end(name, (524, 0))
    return commit_id


@plant("i19-anonymous-offsets")
def anonymous_offsets(wiring: Wiring, name: str) -> int:
    """The group has members, and the producer commits its offsets without a member id."""
    reader, wire = wiring.connect(name + "-reader"), wiring.connect(name)
    reader.join(name, "m", 1)
    reader.fetch(name, 0, [(0, 4)])
    wire.init(name, (525, 0))
    commit_id = wire.commit_in_transaction(name, (525, 0), name, "", -1, name, 5)
    wire.end(name, (525, 0))
    return commit_id


@plant("i20-after-fence")
def after_fence(wiring: Wiring, name: str) -> int:
    """Fenced, and asks again."""
    wire = wiring.connect(name)
    wire.init(name, (526, 0))
    wire.end(name, (526, 0), error="PRODUCER_FENCED")
    return wire.end(name, (526, 0), error="PRODUCER_FENCED")


@plant("i21-after-unknown")
def after_unknown(wiring: Wiring, name: str) -> int:
    """The broker does not know it, and it goes on."""
    wire = wiring.connect(name)
    wire.produce(name, who=(527, 0), sequence=0, error="UNKNOWN_PRODUCER_ID")
    return wire.produce(name, who=(527, 0), sequence=0)


@plant("i22-forgotten-identity")
def forgotten_identity(wiring: Wiring, name: str) -> int:
    """Recovers as if it were new."""
    wire = wiring.connect(name)
    wire.init(name, (528, 0))
    return wire.init(name, (528, 1))


@plant("i23-timeout-changed")
def timeout_changed(wiring: Wiring, name: str) -> int:
    """Another timeout the second time."""
    wire = wiring.connect(name)
    wire.init(name, (529, 0))
    return wire.init(name, (529, 1), had=(529, 0), timeout_ms=5000)
