"""A quorum of two voters and an observer, ours and Kafka's: the same requests get the same answers (KIP-853)."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.differential.quorum import KafkaQuorum
from tests.serving import Server, start, until
from tests.storage.kafka_tools import need_kafka

pytestmark = pytest.mark.interop
VOTERS, OBSERVER = (3000, 3001), 3002
OTHER = UUID(int=77)


def call(address: str, key: ApiKey, version: int, request: Any) -> Any:
    """The answer of one node."""
    side = Target(address)
    try:
        return side.call(key, version, request)
    finally:
        side.close()


def described(address: str) -> Any:
    """The partition of a node's DescribeQuorum."""
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    return call(address, ApiKey.DESCRIBE_QUORUM, 2, request).topics[0].partitions[0]


def leads(address: str) -> bool:
    """Whether there is the leader."""
    return answers(address) and not described(address).error_code


def answers(address: str) -> bool:
    """Whether there is a node."""
    try:
        described(address)
    except OSError:
        return False
    return True


def play(addresses: Mapping[int, str]) -> list[object]:
    """Change the voters; what each request answered, with the parts that differ from run to run made the same."""

    def leader() -> Any:
        return next(each for each in map(described, addresses.values()) if not each.error_code)

    def has_observer() -> bool:
        every = map(described, addresses.values())
        return any(node.replica_id == OBSERVER for each in every for node in each.observers)

    until(has_observer, "the observer to fetch", 60)
    before = leader()
    names = {before.leader_id: "LEADER", sum(VOTERS) - before.leader_id: "FOLLOWER", OBSERVER: "OBSERVER"}
    ids = {name: node for node, name in names.items()}
    directories = {each.replica_id: each.replica_directory_id for each in (*before.current_voters, *before.observers)}
    played: list[object] = []

    def note(answer: Any) -> None:
        played.append(
            (answer.error_code, answer.error_message and re.split("[(]|cluster id|node ", answer.error_message)[0])
        )

    def add(at: str, node: str, directory: UUID | None = None, cluster: str | None = None) -> None:
        host, _, port = addresses[ids[node]].partition(":")
        request = AddRaftVoterRequest(
            cluster, 5000, ids[node], directory or directories[ids[node]], [Listener("CONTROLLER", host, int(port))]
        )
        note(call(addresses[ids[at]], ApiKey.ADD_RAFT_VOTER, 1, request))

    def remove(at: str, node: str, directory: UUID | None = None) -> None:
        request = RemoveRaftVoterRequest(None, ids[node], directory or directories[ids[node]])
        note(call(addresses[ids[at]], ApiKey.REMOVE_RAFT_VOTER, 0, request))

    def members() -> None:
        now = leader()
        voters = sorted(names[each.replica_id] for each in now.current_voters)
        observers = sorted(names[each.replica_id] for each in now.observers if each.replica_id in names)
        played.append((voters, observers, now.leader_epoch - before.leader_epoch))

    members()
    played.append((described(addresses[ids["FOLLOWER"]]).error_code, described(addresses[OBSERVER]).error_code))
    topics = CreateTopicsRequest([CreatableTopic("t", 1, 1)], 1000)
    note(call(addresses[ids["FOLLOWER"]], ApiKey.CREATE_TOPICS, 4, topics).topics[0])
    add("FOLLOWER", "OBSERVER")
    add("FOLLOWER", "OBSERVER", cluster="another")
    add("LEADER", "OBSERVER", OTHER)
    add("LEADER", "OBSERVER")
    members()
    add("LEADER", "OBSERVER")
    remove("LEADER", "OBSERVER", OTHER)
    remove("FOLLOWER", "OBSERVER")
    remove("LEADER", "OBSERVER")
    members()
    remove("LEADER", "OBSERVER")
    remove("LEADER", "LEADER")
    until(lambda: any(not described(each).error_code for each in addresses.values()), "another leader", 30)
    until(lambda: leader().leader_id == ids["FOLLOWER"] and len(leader().observers) >= 2, "both to observe", 30)
    members()
    remove("FOLLOWER", "FOLLOWER")
    return played


def test_voters_change_as_kafkas_do(tmp_path: Path) -> None:
    """Added, refused and removed, the leader at last: codes, texts, voters, observers and the leader epoch."""
    need_kafka()
    kafka = KafkaQuorum(tmp_path, controllers=2, brokers=0, dynamic=True)
    try:
        kafka.start(*VOTERS, OBSERVER)
        until(lambda: any(map(leads, map(kafka.address, VOTERS))), "a leader", 90)
        until(lambda: answers(kafka.address(OBSERVER)), "the observer to listen", 90)
        theirs = play({each: kafka.address(each) for each in kafka.controllers})
    finally:
        kafka.close()
    server = Server(start(controllers=2, features={"kraft.version": 1}))
    try:
        server.control("POST", "/v1/controllers", {})
        nodes = server.control("GET", "/v1/cluster")["controllers"]
        ours = play({each["id"]: f"{each['host']}:{each['port']}" for each in nodes})
    finally:
        server.process.stop()
    assert ours == theirs
