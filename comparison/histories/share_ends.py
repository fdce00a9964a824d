"""Ends of what share groups have: connections that close, members that fall silent, and a coordinator that loads again.

None of them has a response that a history could wait for, so each is followed by a wait until it is seen.
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
"""The shortest that a cluster of this kind allows."""
SILENT_S = 1.5
STABLE_S, WITHIN_S = 0.1, 3.0
NO_EPOCH = 2**31 - 2
"""Of no session of a history: a request with it is refused, and changes nothing."""


def member_ends(target: Target, step: Step) -> StepRequest:
    """A heartbeat after which the member is silent for longer than its session's time."""
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
    """Close a connection on all clusters, and wait until they agree which share sessions are left."""
    for target in targets:
        if connection in target.connections:
            target.connections.pop(connection).close()
        target.shared.clear()  # a group without a session is not loaded any more
    until, alike_since, before = time.monotonic() + WITHIN_S, time.monotonic(), ""
    while time.monotonic() < min(until, alike_since + STABLE_S):
        seen = [_sessions(target) for target in targets]
        if len(set(seen)) > 1 or seen[0] != before:
            alike_since, before = time.monotonic(), seen[0]
        time.sleep(0.004)
    for group in sorted({group for group, _ in targets[0].sharers}):
        wait_shares(targets, since, group)


def _sessions(target: Target) -> str:
    """What a request of an impossible epoch is answered: that there is no session, or that the epoch is wrong."""
    codes = {}
    for group, member in sorted(target.sharers):
        request = ShareAcknowledgeRequest(target.called(group), member, NO_EPOCH, [], False)
        codes[group, member] = target.call(ApiKey.SHARE_ACKNOWLEDGE, 1, request).error_code
    return str(codes)


def restarted(target: Target) -> None:
    """Wait until the share coordinator of a cluster that was restarted has loaded."""
    target.shared.clear()
    warm_shares(target)


STEPS: dict[str, Builder] = {"share_member_ends": member_ends}
