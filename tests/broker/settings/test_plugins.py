"""Python callables in the place of Kafka's classes: how they are named, loaded, and what their failures are."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest

from broker.access.authorizer import PluginAuthorizer, authorizer_of
from broker.access.quotas import BrokerQuotas
from broker.coordination.group.modern.assignor.plugin import plugin_assignor
from broker.coordination.group.modern.assignor.range import Job, Subscriber
from broker.coordination.group.modern.target_assignment import assignor_named, assignor_names
from broker.coordination.metadata.image import ClusterImage
from broker.handlers.create_topics import API as CREATE_TOPICS
from broker.handlers.incremental_alter_configs import API as ALTER_CONFIGS
from broker.options import OptionError, parse
from broker.settings import BrokerSettings
from broker.settings.plugins import (
    AlteredConfigsRequest,
    AuthenticationRequest,
    NewTopicRequest,
    build_principal,
    load,
)
from protocol.acls import AclOperation, ResourceType
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import BrokerWith
from tests.handlers.admin_harness import AdminStage
from tests.in_process import ServersInProcess
from tests.scenarios import sasl
from tests.wire import Closed

DELETE, SET = 1, 0
Plugin = Callable[[str, Callable[[Any], Any]], str]


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """A function that makes a callable importable, and returns its reference."""
    module = ModuleType("rules_of_this_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    load.cache_clear()

    def named(name: str, function: Callable[[Any], Any]) -> str:
        setattr(module, name, function)
        return f"{module.__name__}:{name}"

    return named


def fails(_request: object) -> None:
    """Fail in a way that a callable should not."""
    raise ZeroDivisionError("a mistake in the callable")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("create.topic.policy.class.name=no_such_module:check", "cannot be imported from"),
        ("alter.config.policy.class.name=os:no_such_function", "module 'os' has no attribute 'no_such_function'"),
        ("authorizer.class.name=os:sep", "os:sep is not callable"),
        ("group.consumer.assignors=uniform,no_such_module:assign", "cannot be imported from"),
        ("principal.builder.class=no_such_module:build", "cannot be imported from"),
        ("client.quota.callback.class=nothing", "Class nothing could not be found."),
        ("no.such.setting=os:getcwd", "Kafka has no such broker setting"),
        ("sasl.login.class=os:getcwd", "Class os:getcwd could not be found."),
    ],
)
def test_a_server_does_not_start_with_a_reference_that_cannot_be_loaded(setting: str, sentence: str) -> None:
    """One sentence names the setting; only settings that load something may name a Python callable."""
    with pytest.raises(OptionError) as raised:
        parse({"set": [setting]})
    assert sentence in str(raised.value)
    assert setting.partition("=")[0] in str(raised.value)


def test_a_module_is_found_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes last on the path, so that it hides no module of the server."""
    (tmp_path / "found_here_only.py").write_text("def check(topic): return 'no'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    assert load("found_here_only:check")(None) == "no"


async def test_a_policy_of_topics_gets_what_would_be_created_and_refuses(plugin: Plugin) -> None:
    """Counts after defaults, or the assignment; a failure of the policy fails its topic alone (seen on 4.4.0)."""
    requests: list[NewTopicRequest] = []

    def check(topic: NewTopicRequest) -> str | None:
        requests.append(topic)
        if topic.topic == "broken":
            fails(topic)
        return "too few" if topic.num_partitions == 1 else None

    stage = AdminStage(1, {"create.topic.policy.class.name": plugin("check", check), "num.partitions": "2"})
    topics = [
        CreatableTopic("default", -1, -1),
        CreatableTopic("one", 1, 1),
        CreatableTopic("broken", 3, 1),
        CreatableTopic("assigned", -1, -1, [CreatableReplicaAssignment(0, [1])]),
        CreatableTopic("impossible", 0, 1),
    ]
    answer = await stage.ask(CREATE_TOPICS, CreateTopicsRequest(topics))
    assert [(each.name, each.error_code, each.error_message) for each in answer.topics] == [
        ("default", ErrorCode.NONE, None),
        ("one", ErrorCode.POLICY_VIOLATION, "too few"),
        ("broken", ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ("assigned", ErrorCode.NONE, None),
        ("impossible", ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."),
    ]
    assert requests == [
        NewTopicRequest("default", 2, 1, None),
        NewTopicRequest("one", 1, 1, None),
        NewTopicRequest("broken", 3, 1, None),
        NewTopicRequest("assigned", None, None, {0: [1]}),
    ]
    assert set(stage.image.topics) == {"default", "assigned"}


async def test_a_policy_of_configs_gets_the_keys_of_the_request(plugin: Plugin) -> None:
    """A deleted key is None, others have their new values; it is asked after all other checks."""
    requests: list[AlteredConfigsRequest] = []

    def check(altered: AlteredConfigsRequest) -> str | None:
        requests.append(altered)
        return "not seven" if "7" in altered.configs.values() else None

    stage = AdminStage(1, {"alter.config.policy.class.name": plugin("check", check)})
    stage.topic("t")

    async def altered(*configs: AlterableConfig) -> tuple[ErrorCode, str | None]:
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(2, "t", configs)])
        (response,) = (await stage.ask(ALTER_CONFIGS, request)).responses
        return response.error_code, response.error_message

    assert await altered(AlterableConfig("segment.ms", SET, "9")) == (ErrorCode.NONE, None)
    deleted, added = AlterableConfig("segment.ms", DELETE, None), AlterableConfig("cleanup.policy", 2, "compact")
    assert await altered(deleted, added) == (ErrorCode.NONE, None)
    assert await altered(AlterableConfig("segment.ms", SET, "7")) == (ErrorCode.POLICY_VIOLATION, "not seven")
    assert (await altered(AlterableConfig("segment.ms", SET, "x")))[0] is ErrorCode.INVALID_CONFIG
    assert requests == [
        AlteredConfigsRequest("TOPIC", "t", {"segment.ms": "9"}),
        AlteredConfigsRequest("TOPIC", "t", {"segment.ms": None, "cleanup.policy": "delete,compact"}),
        AlteredConfigsRequest("TOPIC", "t", {"segment.ms": "7"}),
    ]


def test_an_authorizer_decides_alone(plugin: Plugin) -> None:
    """Without ACLs, super users or a cache; "on any topic" is the question about Kafka's placeholder."""
    names: list[str] = []

    def decide(action: Any) -> bool:
        names.append(action.resource_name)
        return bool((action.principal, action.host, action.operation) == ("User:a", "127.0.0.1", "READ"))

    class Requester:
        principal, client_host = "User:a", "127.0.0.1"

    authorizer = authorizer_of(BrokerSettings(1, {"authorizer.class.name": plugin("decide", decide)}))
    assert isinstance(authorizer, PluginAuthorizer)
    image, who = ClusterImage(), Requester()
    assert authorizer.allows(image, who, AclOperation.READ, ResourceType.TOPIC, "t")
    assert not authorizer.allows(image, who, AclOperation.WRITE, ResourceType.TOPIC, "t")
    assert authorizer.allows_somewhere(image, who, AclOperation.READ, ResourceType.TOPIC)
    assert names == ["t", "t", "hardcode"]


def test_a_quota_callback_decides_instead_of_the_metadata(plugin: Plugin) -> None:
    """Usage counts for user and client id together; None is no quota."""

    def limit(client: Any) -> int | None:
        return 1_000 if (client.quota_type, client.client_id) == ("PRODUCE", "batch") else None

    quotas = BrokerQuotas(BrokerSettings(1, {"client.quota.callback.class": plugin("limit", limit)}))
    quotas.follow({(("user", None),): {"producer_byte_rate": 1}})
    now_ms = 1_700_000_000_000
    assert quotas.produce.charge("a", "batch", 20_000, now_ms) == 10_000
    assert quotas.produce.charge("a", "other", 20_000, now_ms) == 0
    assert quotas.fetch.charge("a", "batch", 20_000, now_ms) == 0


def test_an_assignor_has_the_name_of_its_function(plugin: Plugin) -> None:
    """Members may vote for it; it gets names of topics, and a member that it forgets gets nothing."""
    reference = plugin("take_all", lambda group: {min(group.members): {"t": range(group.partitions["t"])}})
    settings = BrokerSettings(1, {"group.consumer.assignors": f"range,{reference}"})
    assert assignor_names(settings) == ("range", "take_all")
    topic = UUID(int=7)
    subscribers = [Subscriber(member_id, None, (topic,), 1, {}) for member_id in ("b", "a")]
    job = Job(subscribers, {topic: 2}, homogeneous=True, names={topic: "t"})
    assert assignor_named("take_all", settings)(job) == {"a": {topic: frozenset({0, 1})}, "b": {}}


@pytest.mark.parametrize("result", [{"a": {"t": [2]}}, {"a": {"other": [0]}}, {"a": 7}, None])
def test_an_assignor_that_assigns_what_does_not_exist_fails_the_heartbeat(plugin: Plugin, result: Any) -> None:
    """UNKNOWN_SERVER_ERROR, rather than a target that no member can reach."""
    topic = UUID(int=7)
    job = Job([Subscriber("a", None, (topic,), 1, {})], {topic: 2}, homogeneous=True, names={topic: "t"})
    with pytest.raises(KafkaError) as raised:
        plugin_assignor(plugin("wrong", lambda _group: result))(job)
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.fixture
def in_process() -> Iterator[BrokerWith]:
    """Clusters of this test's process, which has its modules."""
    with ServersInProcess() as servers, servers.test():
        yield servers.fresh


def test_a_principal_builder_gets_what_a_client_showed(plugin: Plugin, in_process: BrokerWith) -> None:
    """On a plain listener when the client connects, after SASL the user; a failure ends the connection."""
    shown: list[AuthenticationRequest] = []
    principals: set[str] = set()

    def build(client: AuthenticationRequest) -> str:
        shown.append(client)
        if client.name == "bob":
            raise ValueError(client.name)
        return f"Team:{client.name}"

    def authorize(action: Any) -> bool:
        principals.add(action.principal)
        return True

    guarded = sasl.guarded(
        in_process,
        **{
            "principal.builder.class": plugin("build", build),
            "authorizer.class.name": plugin("authorize", authorize),
        },
    )
    request = MetadataRequest([MetadataRequestTopic("foo")], allow_auto_topic_creation=False)
    guarded.server.wire().call(ApiKey.METADATA, 9, request)
    assert shown[-1] == AuthenticationRequest("PLAINTEXT", "PLAINTEXT", "127.0.0.1")
    principals.clear()
    guarded.known().call(ApiKey.METADATA, 9, request)
    assert shown[-1] == AuthenticationRequest("SASL_PLAINTEXT", "SASL_PLAINTEXT", "127.0.0.1", "alice", "PLAIN")
    assert principals == {"Team:alice"}
    refused = guarded.stranger()
    sasl.handshake(refused, "PLAIN")
    assert sasl.authenticate(refused, sasl.BOB).error_code is ErrorCode.NONE
    with pytest.raises(Closed):
        refused.call(ApiKey.METADATA, 9, request)


@pytest.mark.parametrize("result", [None, "alice", 1])
def test_a_principal_has_a_type_and_a_name(plugin: Plugin, result: Any) -> None:
    """Anything else is a failure."""
    client = AuthenticationRequest("PLAINTEXT", "PLAINTEXT", "127.0.0.1")
    with pytest.raises(KafkaError):
        build_principal(plugin("build", lambda _client: result), client)
    assert build_principal(plugin("good", lambda _client: "User:alice"), client) == "User:alice"


@pytest.mark.parametrize("name", ["principal.builder.class", "listener.name.plaintext.principal.builder.class"])
async def test_no_request_names_code(name: str) -> None:
    """The setting may be altered at run time, as in Kafka, but not to a Python callable."""
    stage = AdminStage()
    altered = {}
    for value in ("os:getcwd", "com.example.Builder"):
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "1", [AlterableConfig(name, SET, value)])])
        altered[value] = (await stage.ask(ALTER_CONFIGS, request)).responses[0].error_code
    assert altered == {"os:getcwd": ErrorCode.INVALID_REQUEST, "com.example.Builder": ErrorCode.NONE}
