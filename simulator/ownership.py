"""Ownership of partitions in consumer groups, as assigned by heartbeat responses (KIP-848).

Times are those of the brokers' timers: virtual milliseconds plus the jumps of their clock.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Place = tuple[str, int]


@dataclass
class Claim:
    """Partitions of a member, from their assignment until the member has revoked them.

    ``seen_ms``: the member's timeouts began no earlier. It is when the last answered heartbeat was sent, or an earlier
    one whose lost response may have revoked partitions.
    """

    member: str
    places: frozenset[Place] = frozenset()
    seen_ms: int = 0
    epoch: int = 0


@dataclass
class Ownership:
    """Partitions of the members of all groups. ``patience_ms`` is the shortest timeout of a member."""

    violate: Callable[[str], None]
    patience_ms: int
    claims: dict[str, dict[str, Claim]] = field(default_factory=lambda: defaultdict(dict))
    """Group -> owner (an instance id, or a member id) -> its partitions now."""
    epochs: dict[tuple[str, int], dict[Place, str]] = field(default_factory=lambda: defaultdict(dict))
    """Group and member epoch -> partition -> its owner in that epoch."""
    newest: dict[tuple[str, Place], tuple[int, str]] = field(default_factory=dict)
    """Group and partition -> time of its last assignment, and the member id that got it."""

    def note_assignment(
        self, group: str, owner: str, member: str, epoch: int, places: frozenset[Place], sent_ms: int, now_ms: int
    ) -> None:
        """Check and note a heartbeat response: the member has these partitions in this epoch.

        ``sent_ms`` is when the heartbeat was sent.
        """
        of_epoch = self.epochs[group, epoch]
        for place in sorted(places):
            other = of_epoch.setdefault(place, owner)
            if other != owner:
                self.violate(f"{group}, epoch {epoch}: {_name(place)} belongs to {other} and to {owner}")
        own = self.claims[group].get(owner)
        if own is not None and own.member == member and epoch < own.epoch:
            self.violate(f"{group}: {member} has epoch {epoch}, and had {own.epoch}")
        had = own.places if own is not None and own.member == member else frozenset()
        for place in sorted(places - had):
            self._check_free(group, owner, place, now_ms)
            self.newest[group, place] = now_ms, member
        if own is None or own.member == member or sent_ms >= own.seen_ms:
            self.claims[group][owner] = Claim(member, places | had, sent_ms, epoch)

    def _check_free(self, group: str, owner: str, place: Place, now_ms: int) -> None:
        for other, claim in self.claims[group].items():
            if other != owner and place in claim.places and now_ms < claim.seen_ms + self.patience_ms:
                self.violate(
                    f"{group}: {_name(place)} was given to {owner} while {other} held it, "
                    f"{now_ms - claim.seen_ms} ms after its last heartbeat"
                )

    def keeps(self, group: str, owner: str, member: str, places: frozenset[Place]) -> None:
        """Note that a member sends a heartbeat with these partitions: it has revoked all others."""
        claim = self.claims[group].get(owner)
        if claim is not None and claim.member == member:
            claim.places &= places

    def ends(self, group: str, owner: str, member: str) -> None:
        """Note that a member leaves, or was fenced: it has no partitions."""
        claim = self.claims[group].get(owner)
        if claim is not None and claim.member == member:
            claim.places, claim.epoch = frozenset(), 0

    def commits(self, group: str, member: str, places: Iterable[Place], sent_ms: int) -> None:
        """Check a successful commit: no other member may have got the partitions before ``sent_ms``."""
        for place in places:
            at_ms, newest = self.newest.get((group, place), (sent_ms, member))
            if newest != member and at_ms < sent_ms:
                self.violate(
                    f"{group}: {member} committed {_name(place)} at {sent_ms} ms, which {newest} had since {at_ms} ms"
                )


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"
