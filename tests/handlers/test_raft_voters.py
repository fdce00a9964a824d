"""AddRaftVoter and RemoveRaftVoter: codes and texts of a real 4.3.1 and 4.4.0 with one voter, in their order."""

from uuid import UUID

import pytest

from broker.handlers.add_raft_voter import API as ADD
from broker.handlers.remove_raft_voter import API as REMOVE
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.handlers.admin_harness import CLUSTER_ID, AdminStage

NEW = UUID("11111111-2222-3333-4444-555555555555")
OWN = UUID(int=1)
NEW_KEY = "directoryId=ERERESIiMzNERFVVVVVVVQ"
OWN_KEY = "ReplicaKey(id=1, directoryId=AAAAAAAAAAAAAAAAAAAAAQ)"
OTHER_CLUSTER = f'The given id "nope" doesn\'t match the cluster id "{CLUSTER_ID}"'
AT_CONTROLLER = (Listener("CONTROLLER", "127.0.0.1", 9999),)
NO_ENDPOINT = (
    "Add voter request didn't include the endpoint (Endpoints(endpoints={%s})) for the default listener "
    "ListenerName(CONTROLLER)"
)
UNREACHABLE = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
STATIC = "Cluster doesn't support %s voter because the kraft.version feature is 0"


def add(
    voter: int = 5,
    directory: UUID | None = NEW,
    cluster: str | None = CLUSTER_ID,
    at: tuple[Listener, ...] = AT_CONTROLLER,
) -> AddRaftVoterRequest:
    """A voter to add."""
    return AddRaftVoterRequest(cluster, 1000, voter, directory, at)


ADDED = {
    "another cluster": (add(cluster="nope", voter=-1), 104, OTHER_CLUSTER, 104, OTHER_CLUSTER),
    "new": (add(), 35, STATIC % "adding", 7, UNREACHABLE),
    "no cluster": (add(cluster=None), 35, STATIC % "adding", 7, UNREACHABLE),
    "known id": (
        *(add(1), 35, STATIC % "adding", 126),
        f"The voter id for ReplicaKey(id=1, {NEW_KEY}) is already part of the set of voters [{OWN_KEY}].",
    ),
    "no directory": (add(directory=None), *(42, "Add voter request didn't include a valid voter") * 2),
    "negative": (add(-1), *(42, "Add voter request didn't include a valid voter") * 2),
    "no listener": (add(at=()), *(42, NO_ENDPOINT % "") * 2),
    "in small letters": (add(at=(Listener("Controller", "h", 1),)), 35, STATIC % "adding", 7, UNREACHABLE),
    "two others": (
        add(at=(Listener("a", "h", 1), Listener("D", "h", 2))),
        *(42, NO_ENDPOINT % "ListenerName(D)=h/<unresolved>:2, ListenerName(A)=h/<unresolved>:1") * 2,
    ),
    "one listener in two addresses": (
        add(at=(Listener("FOO", "h", 1), Listener("foo", "h", 2))),
        *(42, NO_ENDPOINT % "ListenerName(FOO)=h/<unresolved>:2") * 2,
    ),
    "another listener": (
        add(at=(Listener("FOO", "127.0.0.1", 9999),)),
        *(42, NO_ENDPOINT % "ListenerName(FOO)=127.0.0.1/<unresolved>:9999") * 2,
    ),
}
"""Request, code and text with kraft.version 0, and with 1."""


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("case", ADDED)
async def test_a_voter_is_refused_as_kafka_refuses_it(case: str, version: int) -> None:
    """Cluster id, voter, endpoint, kraft.version, duplicates, and last its unreachable node."""
    request, static_code, static_text, code, text = ADDED[case]
    stage = AdminStage()
    answer = await stage.ask(ADD, request, version)
    assert (answer.error_code, answer.error_message) == (static_code, static_text)
    stage.cluster.quorum.version = 1
    answer = await stage.ask(ADD, request, version)
    assert (answer.error_code, answer.error_message) == (code, text)


def removal(voter: int, directory: UUID | None = NEW, cluster: str | None = CLUSTER_ID) -> RemoveRaftVoterRequest:
    """A voter to remove."""
    return RemoveRaftVoterRequest(cluster, voter, directory)


def not_found(voter: int, key: str) -> str:
    """The refusal to remove a voter."""
    return f"Cannot remove voter ReplicaKey(id={voter}, {key}) from the set of voters [{OWN_KEY}]"


REMOVED = {
    "another cluster": (removal(5, cluster="nope"), 104, OTHER_CLUSTER, 104, OTHER_CLUSTER),
    "unknown": (removal(5), 35, STATIC % "removing", 127, not_found(5, NEW_KEY)),
    "another directory": (removal(1), 35, STATIC % "removing", 127, not_found(1, NEW_KEY)),
    "the last one": (
        removal(1, OWN),
        35,
        STATIC % "removing",
        127,
        f"Cannot remove voter {OWN_KEY} from the set of voters [{OWN_KEY}]",
    ),
    "no directory": (removal(1, None), *(42, "Remove voter request didn't include a valid voter") * 2),
    "negative": (removal(-1), *(42, "Remove voter request didn't include a valid voter") * 2),
}


@pytest.mark.parametrize("case", REMOVED)
async def test_the_only_voter_stays(case: str) -> None:
    """Each removal is refused, with its error for a static and for a dynamic quorum."""
    request, static_code, static_text, code, text = REMOVED[case]
    stage = AdminStage()
    answer = await stage.ask(REMOVE, request)
    assert (answer.error_code, answer.error_message) == (static_code, static_text)
    stage.cluster.quorum.version = 1
    answer = await stage.ask(REMOVE, request)
    assert (answer.error_code, answer.error_message) == (code, text)


async def test_both_need_alter_on_the_cluster() -> None:
    """CLUSTER_AUTHORIZATION_FAILED before anything else is looked at."""
    denied = {(AclOperation.ALTER, ResourceType.CLUSTER)}
    for api, request in ((ADD, add(cluster="nope")), (REMOVE, removal(5, cluster="nope"))):
        answer = await AdminStage().ask(api, request, denied=denied)
        assert answer.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
