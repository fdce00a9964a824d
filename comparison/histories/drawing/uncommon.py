"""Random requests that clients hardly ever send: share state, quorum, log directories, nodes, logins without SASL.

How numbers are chosen: `pieces`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from comparison.histories.drawing.pieces import Pieces
from protocol.apis import ApiKey

GROUPS = ("h0", "h0", "h0", "h1", "")
OF_STATE: Mapping[str, ApiKey] = {
    "initialize": ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    "write": ApiKey.WRITE_SHARE_GROUP_STATE,
    "read": ApiKey.READ_SHARE_GROUP_STATE,
    "summarize": ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    "delete": ApiKey.DELETE_SHARE_GROUP_STATE,
}
OF_NODES: Mapping[str, ApiKey] = {
    "broker": ApiKey.UNREGISTER_BROKER,
    "controller": ApiKey.UNREGISTER_CONTROLLER,
    "add_voter": ApiKey.ADD_RAFT_VOTER,
    "remove_voter": ApiKey.REMOVE_RAFT_VOTER,
}
BATCHES: Sequence[list[list[int]]] = (
    [],
    [[0, 4, 2, 1]],
    [[0, 4, 0, 1], [5, 9, 2, 1]],
    [[3, 5, 4, 2]],
    [[10, 12, 0, 3]],
    [[0, 2, 2, 1], [1, 4, 0, 2]],
    [[7, 6, 2, 1]],
    [[0, 0, 9, 1]],
)  # first and last offset, delivery state and count of each


class Uncommon(Pieces):
    """Draws requests for one partition or node each."""

    def _share_state(self) -> dict[str, Any]:
        what = self._chance.choice(
            ("initialize", "initialize", "write", "write", "write", "read", "summarize", "delete")
        )
        epochs = (0, 0, 0, 1, 1, 2, -1)
        fields: dict[str, Any] = {"what": what, "group": self._chance.choice(GROUPS), **self._place()}
        if self._rarely(25):
            fields["partition"] = -1
        return self._step(
            "share_state",
            OF_STATE[what],
            **fields,
            state_epoch=self._chance.choice(epochs),
            leader_epoch=self._chance.choice(epochs),
            start=self._chance.choice((0, 0, 3, 5, -1, -2, 10)),
            complete=self._chance.choice((-1, 0, 5)),
            batches=self._chance.choice(BATCHES),
        )

    def _quorum(self) -> dict[str, Any]:
        places = [self._chance.choice((["=__cluster_metadata", 0], ["=__cluster_metadata", 1], ["t0", 0]))]
        if self._rarely(6):
            places = [*places, ["=__cluster_metadata", 0]]
        return self._step("quorum", ApiKey.DESCRIBE_QUORUM, places=[] if self._rarely(12) else places)

    def _move_log_dirs(self) -> dict[str, Any]:
        place = self._place()
        fields = {
            "path": self._chance.choice(("/nowhere", "relative", "")),
            "places": [[place["topic"], place["partition"]]],
        }
        return self._step("move_log_dirs", ApiKey.ALTER_REPLICA_LOG_DIRS, **fields)

    def _topology(self) -> dict[str, Any]:
        what = self._chance.choice([each for each, key in OF_NODES.items() if key in self._versions])
        node = self._chance.choice((77, 78, 2**31 - 1, -1))
        cluster_id = self._chance.choice((None, "another"))
        return self._step("topology", OF_NODES[what], what=what, node=node, cluster_id=cluster_id)

    def _handshake(self) -> dict[str, Any]:
        if self._rarely(2):
            return self._step("authenticate", ApiKey.SASL_AUTHENTICATE, text=self._chance.choice(("", "x")))
        return self._step("handshake", ApiKey.SASL_HANDSHAKE, mechanism=self._chance.choice(("PLAIN", "", "x")))
