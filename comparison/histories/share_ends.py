"""Ends of share sessions and members: closed connections, members without heartbeats, a coordinator that loads again.

None of these events has a response for which a history could wait, so each is followed by a wait for its effect.
"""

import time
from collections.abc import Sequence

from comparison.histories.end_state import Ends
from comparison.histories.quiescence import wait_metadata
from comparison.histories.quiet_shares import wait_shares, warm_shares
from comparison.histories.shares import GROUP, SET, beat
from comparison.histories.step_request import Builder, Step, StepRequest
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.share_acknowledge import ShareAcknowledgeRequest

UNSET = 1
SILENCE = {"share.session.timeout.ms": "1000", "share.heartbeat.interval.ms": "500"}
"""The shortest timeouts that the clusters allow."""
SILENT_S = 1.5  # the session timeout, and half as much for its timer
STABLE_S, WITHIN_S = 0.1, 3.0
"""How long sessions have to be alike to count as settled, and the limit: ours, the end of one takes milliseconds."""
NO_EPOCH = 2**31 - 2
"""Epoch that no session of a history has: a request with it is refused, and changes nothing."""


def member_ends(target: Target, step: Step) -> StepRequest:
    """ShareGroupHeartbeat after which the member sends none for longer than its session timeout."""
    _set_silence(target, step["group"], on=True)
    request = beat(target, step)
    heard = request.after

    def after(answer: object) -> None:
        if heard is not None:
            heard(answer)
        time.sleep(SILENT_S)
        _set_silence(target, step["group"], on=False)

    request.after = after
    return request


def _set_silence(target: Target, group: str, *, on: bool) -> None:
    changes = [AlterableConfig(name, SET if on else UNSET, value if on else None) for name, value in SILENCE.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP, target.called(group), changes)])
    target.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    wait_metadata(target)


def disconnect(targets: Sequence[Target], since: Ends, connection: str) -> None:
    """Close a connection on all clusters, and wait until they have the same share sessions."""
    for target in targets:
        if connection in target.connections:
            target.connections.pop(connection).close()
        target.shared.clear()  # a group without a session is unloaded
    until, alike_since, before = time.monotonic() + WITHIN_S, time.monotonic(), ""
    while time.monotonic() < min(until, alike_since + STABLE_S):
        seen = [_sessions(target) for target in targets]
        if len(set(seen)) > 1 or seen[0] != before:
            alike_since, before = time.monotonic(), seen[0]
        time.sleep(0.004)  # as what is waited for takes some milliseconds
    for group in sorted({group for group, _ in targets[0].sharers}):
        wait_shares(targets, since, group)


def _sessions(target: Target) -> str:
    """Return the error of a request with an impossible epoch: no such session, or an invalid epoch."""
    codes = {}
    for group, member in sorted(target.sharers):
        request = ShareAcknowledgeRequest(target.called(group), member, NO_EPOCH, [], False)
        codes[group, member] = target.call(ApiKey.SHARE_ACKNOWLEDGE, 1, request).error_code
    return str(codes)


def restarted(target: Target) -> None:
    """Wait until the share coordinator of a restarted cluster has loaded."""
    target.shared.clear()
    warm_shares(target)


STEPS: dict[str, Builder] = {"share_member_ends": member_ends}
