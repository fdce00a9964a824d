"""Draws a schedule from a seed: two to four clients, a part of the faults, and steps by their weights."""

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, Final

from understudy.exam.exercise import TOPICS
from understudy.exam.random import faults, steps
from understudy.exam.random.schedule import FAULT, Schedule, Step
from understudy.exam.random.steps import PRODUCERS

NEEDS: Final[Mapping[str, frozenset[str]]] = {
    "plain": frozenset({"producer"}),
    "idempotent": frozenset({"producer", "idempotence"}),
    "transactional": frozenset({"producer", "idempotence", "transactions"}),
    "reader": frozenset({"consumer"}),
    "member": frozenset({"consumer", "groups", "commit_offsets"}),
    "sharer": frozenset({"share_groups"}),
    "admin": frozenset({"admin"}),
    "copier": frozenset({"transactions", "send_offsets", "groups", "read_committed"}),
}
"""Role -> capabilities that a library needs for it."""
CASTS: Final = (
    ("idempotent", "member"),
    ("idempotent", "member", "member"),
    ("idempotent", "reader"),
    ("plain", "member", "member"),
    ("plain", "reader"),
    ("transactional", "reader"),
    ("transactional", "member"),
    ("transactional", "member", "member"),
    ("transactional", "transactional", "reader"),
    ("transactional", "idempotent", "member"),
    ("idempotent", "copier"),
    ("transactional", "copier"),
    ("idempotent", "copier", "reader"),
    ("idempotent", "transactional", "member", "reader"),
    ("idempotent", "sharer"),
    ("idempotent", "sharer", "sharer"),
    ("plain", "sharer", "sharer"),
    ("idempotent", "admin", "member"),
    ("transactional", "admin", "reader"),
)
"""Which clients meet in a schedule; one of them is drawn."""
CODECS: Final = ("none", "none", "gzip")
SECURITY: Final[Mapping[str, str]] = {
    "tls": "tls", "password": "sasl_plain", "scram": "sasl_scram", "token": "sasl_oauthbearer",
}  # fmt: skip
"""How clients connect, where not in the clear -> the capability that a library needs for it."""
RARE: Final = 0.2
"""Share of the schedules with static members, with automatic commits; a third of that with each kind of security.

Ours, some of each in a hundred seeds.
"""
LENGTH: Final = (12, 24)  # steps: enough for faults to meet, few to read
FAULT_SHARE: Final = 0.35  # of the steps: about two steps of clients for each fault
MET_SHARE: Final = 0.8
"""Share of the faults after which a step comes that meets them: ours, as a fault that meets nothing shows nothing."""
KILL_SHARE: Final = 0.03  # of the steps: in less than half of the schedules
CLOSED_SHARE: Final = 0.3
"""Share of the schedules in which the application ends while faults are still there: ours, some in each ten seeds."""


def drawn(seed: int, capabilities: Collection[str]) -> Schedule | None:
    """Return the schedule of a seed for a library with these capabilities; None if it has too few."""
    chance = Random(f"understudy exam {seed}")  # noqa: S311 - replayed from the seed
    casts = [cast for cast in CASTS if all(NEEDS[role] <= set(capabilities) for role in cast)]
    if not casts:
        return None
    clients = _clients(chance, chance.choice(casts), capabilities)
    about = faults.about(clients.values(), TOPICS)
    # Two may meet; more than six would hide each other.
    kinds = chance.sample(faults.FAULTS, chance.randrange(2, 7))
    schedule_steps: list[Step] = []
    meeting: Sequence[str] = ()
    for number in range(chance.randrange(*LENGTH)):
        if chance.random() < FAULT_SHARE and (verbs := _fault(chance, kinds, about)):
            name, steps_of_fault = verbs
            meeting = faults.met_by(steps_of_fault) if chance.random() < MET_SHARE else ()
            lasts_ms = chance.choice(faults.LASTS_MS)
            schedule_steps.append(Step(number, FAULT, {"name": name, "steps": steps_of_fault, "lasts_ms": lasts_ms}))
            continue
        kind, fields = _step(chance, clients, meeting)
        meeting = ()
        if kind == "seek" and "seek" not in capabilities:
            kind, fields = "poll", {"client": fields["client"], "times": 1}
        if "max_records" not in capabilities:
            fields.pop("max_records", None)
        schedule_steps.append(Step(number, kind, fields))
    if chance.random() < CLOSED_SHARE:
        schedule_steps += [Step(len(schedule_steps) + at, "close", {"client": name}) for at, name in enumerate(clients)]
    return Schedule(seed, clients, schedule_steps)


def needs_of(schedule: Schedule) -> frozenset[str]:
    """Return the capabilities that a library needs for a schedule."""
    needs: set[str] = set()
    for options in schedule.used().values():
        needs |= NEEDS[options["role"]]
        needs |= {"read_committed"} if options.get("isolation") == "read_committed" else set()
        needs |= {"consumer_protocol"} if options.get("protocol") == "consumer" else set()
        needs |= {name for name in ("auto_commit", "compression") if name in options}
        needs |= {"static_members"} if "instance_id" in options else set()
        needs |= {SECURITY[options["security"]]} if "security" in options else set()
    needs |= {"max_records"} if any(step.fields.get("max_records") for step in schedule.steps) else set()
    needs |= {"seek"} if any(step.kind == "seek" for step in schedule.steps) else set()
    return frozenset(needs)


def _clients(chance: Random, cast: Sequence[str], capabilities: Collection[str]) -> dict[str, dict[str, Any]]:
    topic = chance.choice(("t", "many"))
    protocols = ["classic", "consumer"] if "consumer_protocol" in capabilities else ["classic"]
    isolations = ["read_uncommitted", "read_committed"] if "read_committed" in capabilities else ["read_uncommitted"]
    protocol, isolation = chance.choice(protocols), chance.choice(isolations)
    static = "static_members" in capabilities and chance.random() < RARE
    automatic = chance.random() < RARE and "auto_commit" in capabilities
    # Mostly a batch for each send; 50 ms collect several sends.
    compression, linger_ms = chance.choice(CODECS), chance.choice((0, 0, 5, 50))
    compression = compression if "compression" in capabilities else "none"
    security = next((name for name, need in SECURITY.items() if chance.random() < RARE and need in capabilities), "")
    clients: dict[str, dict[str, Any]] = {}
    for role in cast:
        name = f"{role}-{1 + sum(each['role'] == role for each in clients.values())}"
        options: dict[str, Any] = {"role": role, "topic": topic}
        if role == "transactional":
            options["transactional_id"] = name
        if role == "copier":
            options |= {"transactional_id": name, "output": "u", "group": "copier"}
            options |= {"protocol": "classic", "isolation": "read_committed"}
        if role == "reader":
            options["isolation"] = isolation
        if role == "member":
            options |= {"group": "g", "protocol": protocol, "isolation": isolation}
            options |= {"instance_id": name} if static else {}
            options |= {"auto_commit": True} if automatic else {}
        if role == "sharer":
            options |= {"group": "s", "protocol": "share"}
        if security and role not in {"admin", "sharer"}:  # whose commands have no such fields
            options["security"] = security
        if role in PRODUCERS:
            options |= {"compression": compression} if compression != "none" else {}
            options |= {"linger_ms": linger_ms} if linger_ms else {}
        clients[name] = options
    return clients


def _fault(chance: Random, kinds: Sequence[faults.Line], about: faults.About) -> tuple[str, list[faults.Verb]] | None:
    (line,) = chance.choices(kinds, [each.weight for each in kinds])
    verbs = line.draw(chance, about)
    return (line.name, verbs) if verbs else None


def _step(
    chance: Random, clients: Mapping[str, Mapping[str, Any]], meeting: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """Return a step of the application, if possible one of those that meet the last fault."""
    if chance.random() < KILL_SHARE:
        return steps.KILL, {}
    possible = [(name, line) for name in sorted(clients) for line in steps.STEPS if clients[name]["role"] in line.roles]
    if wanted := [(name, line) for name, line in possible if line.name in meeting]:
        name, step = chance.choice(wanted)
    else:
        name = chance.choice(sorted(clients))
        lines = [line for owner, line in possible if owner == name]
        (step,) = chance.choices(lines, [line.weight for line in lines])
    options = clients[name]
    return step.name, {"client": name, **step.draw(chance, options, TOPICS[options["topic"]])}
