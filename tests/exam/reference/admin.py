"""Topics are created by the reference client: any broker passes the request on to the controller (KIP-590)."""

import time

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.exam.reference.network import RETRIABLE, Network, Refused


def create_topic(network: Network, topic: str, partitions: int, timeout_ms: int) -> None:
    """Create it. Raises Refused."""
    if "creates-nothing" in network.mutations:
        return
    deadline = time.monotonic() + timeout_ms / 1000
    request = CreateTopicsRequest([CreatableTopic(topic, partitions, -1)], 2_000)
    while True:
        answer = network.ask_any(ApiKey.CREATE_TOPICS, 7, request, deadline)
        (created,) = answer.topics
        code = created.error_code
        if code is ErrorCode.NONE or "refusal-is-success" in network.mutations:
            return
        if code not in RETRIABLE or "gives-up-on-errors" in network.mutations:
            raise Refused("other", code, code.name)
        network.pause(deadline)
