"""Verb that changes the settings of a topic, with the checks and errors of IncrementalAlterConfigs."""

from broker.control.request import ControlRequest
from broker.control.topics import topic_answer, topic_of
from broker.control.verbs import answers
from broker.coordination.metadata.configs import NewConfigs
from broker.coordination.metadata.features import ELR_VERSION
from broker.settings.alter import Alteration, Change, World, decide
from broker.settings.model import ConfigResourceType, Operation
from control_api.answers import topics as answer
from control_api.topics import TopicSettings
from protocol.errors import ErrorCode, KafkaError
from protocol.topic_names import check_topic_name


@answers("topics configure")
async def configure(request: ControlRequest, body: TopicSettings) -> answer.Topic:
    """Set and remove settings of a topic. Raises KafkaError if Kafka's controller would refuse it."""
    topic, cluster = topic_of(request), request.cluster
    image = cluster.image
    changes = [
        Change(name, value, Operation.DELETE if value is None else Operation.SET)
        for name, value in body["configs"].items()
    ]
    world = World(
        settings=cluster.settings,
        stored=image.config,
        topic_exists=image.topics.__contains__,
        check_topic_name=check_topic_name,
        broker_exists=image.brokers.__contains__,
        at_controller=True,
        authorizes_first=False,
        may_alter=lambda _type, _name: True,
        eligible_leader_replicas=image.features.get(ELR_VERSION, 0) > 0,
    )
    wanted = Alteration(ConfigResourceType.TOPIC, topic.name, changes)
    ((error, message, new),) = decide([wanted], world, incremental=True)
    if error is not ErrorCode.NONE:
        raise KafkaError(error, message or "")
    if new is not None:
        stored = NewConfigs(ConfigResourceType.TOPIC, topic.name, new, list(body["configs"]))
        await cluster.metadata.ask(lambda machine, _now_ms, to: machine.alter_configs([stored], to))
    return topic_answer(request, image.topics[topic.name])
