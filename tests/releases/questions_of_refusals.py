"""Questions about refusals: their codes, and whether a message goes with them."""

from typing import Any

from protocol.apis import ApiKey
from protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import AlterableConfig as Change
from protocol.messages.incremental_alter_configs import AlterConfigsResource as Resource
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.releases.asking import Client

TOPIC, BROKER = 2, 4


def shown(result: Any) -> str:
    """The code, and whether its message is null, empty or a text."""
    message = result.error_message
    return f"{result.error_code.name} {'null' if message is None else 'text' if message else 'empty'}"


def all_shown(*results: Any) -> str:
    """Several of them."""
    return ", ".join(map(shown, results))


def topics_that_cannot_be_created(client: Client) -> str:
    """There already, with a bad name, without partitions, with too many replicas, with a bad setting."""
    name = client.topic()

    def create(topic: CreatableTopic) -> Any:
        return client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest([topic], 10_000)).topics[0]

    fresh = client.name("topic")
    return all_shown(
        create(CreatableTopic(fresh + "-made", 1, 1)),
        create(CreatableTopic(name, 1, 1)),
        create(CreatableTopic("a?", 1, 1)),
        create(CreatableTopic(fresh, 0, 1)),
        create(CreatableTopic(fresh, 1, 9)),
        create(CreatableTopic(fresh, 1, 1, configs=[CreatableTopicConfig("nonsense", "1")])),
        create(CreatableTopic(fresh, 1, 1, assignments=[CreatableReplicaAssignment(0, [1])])),
    )


def partitions_that_cannot_be_added(client: Client) -> str:
    """To an unknown topic, as many as there are, fewer, with a bad assignment."""
    name = client.topic()

    def add(topic: CreatePartitionsTopic) -> Any:
        return client.ask(ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest([topic], 10_000)).results[0]

    return all_shown(
        add(CreatePartitionsTopic(name, 2, None)),
        add(CreatePartitionsTopic(client.name("unknown"), 3, None)),
        add(CreatePartitionsTopic(name, 2, None)),
        add(CreatePartitionsTopic(name, 1, None)),
        add(CreatePartitionsTopic(name, 3, [CreatePartitionsAssignment([])])),
        add(CreatePartitionsTopic(name, 3, [CreatePartitionsAssignment([9])])),
    )


def a_topic_that_cannot_be_deleted(client: Client) -> str:
    """It does not exist (messages since v5)."""
    name = client.name("unknown")
    request = DeleteTopicsRequest([name], 10_000, [DeleteTopicState(name)])
    return shown(client.ask(ApiKey.DELETE_TOPICS, request, at_least=5).responses[0])


def settings_that_cannot_be_altered(client: Client) -> str:
    """Taken; unknown, bad, of an unknown topic, of an unknown broker, read-only, of an unknown kind."""
    name = client.topic()

    def alter(kind: int, resource: str, setting: str, value: str) -> Any:
        one = AlterConfigsResource(kind, resource, [AlterableConfig(setting, value)])
        return client.ask(ApiKey.ALTER_CONFIGS, AlterConfigsRequest([one], validate_only=True)).responses[0]

    return all_shown(
        alter(TOPIC, name, "retention.ms", "5000"),
        alter(TOPIC, name, "nonsense", "1"),
        alter(TOPIC, name, "retention.ms", "x"),
        alter(TOPIC, client.name("unknown"), "retention.ms", "5"),
        alter(BROKER, "7", "log.retention.ms", "5"),
        alter(BROKER, "1", "broker.id", "5"),
        alter(77, "x", "retention.ms", "5"),
    )


def settings_that_cannot_be_altered_one_by_one(client: Client) -> str:
    """The same by IncrementalAlterConfigs, and an append to what is no list."""
    name = client.topic()

    def alter(kind: int, resource: str, setting: str, value: str | None, operation: int = 0) -> Any:
        one = Resource(kind, resource, [Change(setting, operation, value)])
        request = IncrementalAlterConfigsRequest([one], validate_only=True)
        return client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses[0]

    return all_shown(
        alter(TOPIC, name, "retention.ms", "5000"),
        alter(TOPIC, name, "nonsense", "1"),
        alter(TOPIC, name, "retention.ms", "x"),
        alter(TOPIC, name, "retention.ms", None),
        alter(TOPIC, name, "retention.ms", "5", 2),
        alter(TOPIC, client.name("unknown"), "retention.ms", "5"),
        alter(BROKER, "7", "log.retention.ms", "5"),
    )


def settings_that_cannot_be_described(client: Client) -> str:
    """Of a topic; of an unknown one, one with a bad name, another broker."""

    def describe(kind: int, name: str) -> Any:
        return client.ask(
            ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)])
        ).results[0]

    return all_shown(
        describe(TOPIC, client.topic()),
        describe(TOPIC, client.name("unknown")),
        describe(TOPIC, "a?"),
        describe(BROKER, "7"),
        describe(BROKER, "x"),
    )


def acls_without_an_authorizer(client: Client) -> str:
    """Made and listed."""
    creation = AclCreation(2, "topic", 3, "User:a", "*", 3, 3)
    created = client.ask(ApiKey.CREATE_ACLS, CreateAclsRequest([creation])).results[0]
    return all_shown(created, client.ask(ApiKey.DESCRIBE_ACLS, DescribeAclsRequest(1, None, 1, None, None, 1, 1)))


def leaders_that_need_no_election(client: Client) -> str:
    """The preferred one leads; an unknown partition."""
    topics = [TopicPartitions(client.topic(), [0, 7])]
    answer = client.ask(ApiKey.ELECT_LEADERS, ElectLeadersRequest(topics, 10_000))
    return all_shown(*sorted(answer.replica_election_results[0].partition_result, key=lambda each: each.partition_id))


def reassignments_that_cannot_be(client: Client) -> str:
    """To an unknown broker, of an unknown topic, the end of none."""
    name = client.topic()

    def move(topic: str, replicas: list[int] | None) -> Any:
        moved = ReassignableTopic(topic, [ReassignablePartition(0, replicas)])
        answer = client.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest(10_000, [moved]))
        return answer.responses[0].partitions[0]

    return all_shown(
        move(name, [1]), move(name, [9]), move(client.name("unknown"), [1]), move(name, None), move(name, [])
    )


def quotas_that_cannot_be_described(client: Client) -> str:
    """All; of an unknown kind; of one kind twice."""

    def describe(*components: ComponentData) -> Any:
        return client.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest(components))

    user = ComponentData("user", 0, "a")
    return all_shown(describe(), describe(ComponentData("nonsense", 0, "a")), describe(user, user))


def users_that_cannot_be_described(client: Client) -> str:
    """All, and an unknown one."""
    every = client.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(None))
    one = client.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest([UserName("unknown")]))
    return all_shown(every, one, one.results[0])


def a_coordinator_that_is_found(client: Client) -> str:
    """There is no error, but perhaps a message."""

    def find(key: str, kind: int) -> Any:
        answer = client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key, kind, (key,)), at_least=1)
        return answer.coordinators[0] if answer.coordinators else answer

    group = client.name("group")
    client.coordinator(group, 0)
    return all_shown(find(group, 0))


QUESTIONS = (
    topics_that_cannot_be_created,
    partitions_that_cannot_be_added,
    a_topic_that_cannot_be_deleted,
    settings_that_cannot_be_altered,
    settings_that_cannot_be_altered_one_by_one,
    settings_that_cannot_be_described,
    acls_without_an_authorizer,
    leaders_that_need_no_election,
    reassignments_that_cannot_be,
    quotas_that_cannot_be_described,
    users_that_cannot_be_described,
    a_coordinator_that_is_found,
)
