"""The refusals of a requester without rights on the cluster, API by API: as a real 4.3.1 with ACLs answers.

The real texts that begin with "Request Request(" print an object of the JVM up to the closing parenthesis.
"""

import re
from typing import Any

import pytest

from broker.handlers import APIS
from broker.request.api import AnyApi
from broker.request.context import AclOperation, ResourceType
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData
from protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialDeletion
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.unregister_controller import UnregisterControllerRequest
from protocol.messages.update_features import UpdateFeaturesRequest
from tests.handlers.admin_harness import AdminStage

FAILED = "Cluster authorization failed."
NEEDS = "Request Request(...) needs {} permission."
ALTER, DESCRIBE = NEEDS.format("ALTER"), NEEDS.format("DESCRIBE")
CASES: dict[ApiKey, tuple[Any, str | None]] = {
    ApiKey.ADD_RAFT_VOTER: (AddRaftVoterRequest("x"), FAILED),
    ApiKey.REMOVE_RAFT_VOTER: (RemoveRaftVoterRequest("x"), FAILED),
    ApiKey.UNREGISTER_CONTROLLER: (UnregisterControllerRequest(5), ALTER),
    ApiKey.UNREGISTER_BROKER: (UnregisterBrokerRequest(5), ALTER),
    ApiKey.UPDATE_FEATURES: (UpdateFeaturesRequest(), ALTER),
    ApiKey.DESCRIBE_QUORUM: (DescribeQuorumRequest(), FAILED),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (DescribeClientQuotasRequest(), None),
    ApiKey.ALTER_CLIENT_QUOTAS: (AlterClientQuotasRequest([EntryData([EntityData("user", "u")])]), FAILED),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (AlterUserScramCredentialsRequest([ScramCredentialDeletion("u", 1)]), ALTER),
    ApiKey.DESCRIBE_ACLS: (DescribeAclsRequest(1, None, 1, None, None, 1, 1), DESCRIBE),
    ApiKey.CREATE_ACLS: (CreateAclsRequest([AclCreation(2, "t", 3, "User:a", "*", 3, 3)]), ALTER),
    ApiKey.DELETE_ACLS: (DeleteAclsRequest([DeleteAclsFilter(1, None, 1, None, None, 1, 1)]), ALTER),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (AlterPartitionReassignmentsRequest(), ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (ListPartitionReassignmentsRequest(), DESCRIBE),
}
OPERATIONS = (AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS)


def api_of(key: ApiKey) -> AnyApi:
    """The API with this key."""
    return next(served.api for served in APIS if served.key == key)


def errors(answer: Any) -> set[tuple[int, str | None]]:
    """Codes and texts: at the top, or of the first list in the answer."""
    if hasattr(answer, "error_code"):
        return {(answer.error_code, answer.error_message)}
    (items,) = (getattr(answer, name) for name in answer.FIELDS if name != "throttle_time_ms")
    return {(each.error_code, each.error_message) for each in items}


@pytest.mark.parametrize("key", CASES, ids=lambda key: key.title)
async def test_the_text_is_kafkas(key: ApiKey) -> None:
    """CLUSTER_AUTHORIZATION_FAILED, with Kafka's text; with the permission there is another answer."""
    request, text = CASES[key]
    denied = {(operation, ResourceType.CLUSTER) for operation in OPERATIONS}
    answer = await AdminStage().ask(api_of(key), request, denied=denied)
    ((code, message),) = errors(answer)
    shown = None if message is None else re.sub(r"Request\(.*\) needs", "Request(...) needs", message)
    assert (code, shown) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
    try:
        allowed = errors(await AdminStage().ask(api_of(key), request))
    except AttributeError:  # the stage has no such part: the request got beyond the check
        return
    assert ErrorCode.CLUSTER_AUTHORIZATION_FAILED not in {code for code, _ in allowed}
