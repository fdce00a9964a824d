"""One broker with its metadata, enough for the config APIs: the machine, its runtime and the settings are real."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from broker.coordination.metadata.brokers import Registration
from broker.coordination.metadata.effects import ConfigChanged
from broker.coordination.metadata.image import BrokerListener
from broker.coordination.metadata.machine import MetadataMachine
from broker.coordination.metadata.topics import NewTopic
from broker.coordination.outcome import TransactionalAppend
from broker.coordination.runtime import Runtime
from broker.request.api import AnyApi
from broker.request.connection import Connection
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.settings import BrokerSettings, ConfigResourceType
from broker.time.clock import ManualClock
from protocol.log_records.metadata import MetadataCodec
from tests.replicated_log import ReplicatedInMemory
from tests.versions import SERVED

TOPIC, BROKER, LOGGER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER
METRICS, GROUP = ConfigResourceType.CLIENT_METRICS, ConfigResourceType.GROUP


class ForgetfulLog(ReplicatedInMemory):
    """A log that takes everything and remembers nothing but its end."""

    def __init__(self) -> None:
        super().__init__()
        self.end = 0

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], now_ms: int, transaction: TransactionalAppend | None
    ) -> int:
        """Count the records."""
        assert transaction is None
        assert now_ms >= 0
        base, self.end = self.end, self.end + len(records)
        return base

    def replay(self) -> Iterable[Any]:
        """There was nothing before."""
        return ()


class DeniedContext(RequestContext):
    """A request of a principal to which some operations are denied."""

    denied: tuple[ResourceType, ...] = ()

    def authorized(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:  # noqa: ARG002
        """What is not denied is allowed."""
        return resource_type not in self.denied


class Context:
    """A cluster of the broker 1, with a topic foo, and requests to it."""

    def __init__(self, static: dict[str, str] | None = None) -> None:
        settings = BrokerSettings(1, static)
        self.settings, self.clock = settings, ManualClock(1)
        ids = iter(range(1000, 10_000))
        machine = MetadataMachine(settings, new_uuid=lambda: UUID(int=next(ids)), below=lambda _n: 0)
        self.machine = machine
        log = ForgetfulLog()
        self.metadata = Runtime(machine, cast("Any", MetadataCodec()), log, self.clock, self._notice)
        self.metadata.load()
        who = Registration(1, UUID(int=1), {"PLAINTEXT": BrokerListener("localhost", 9092)})
        self.metadata.submit(lambda _now_ms: machine.register_broker(who))
        self.metadata.submit(lambda _now_ms: machine.unfence_broker(1))
        self.metadata.submit(lambda _now_ms: machine.create_topics([NewTopic("foo", 1, 1)]))
        self._follow()

    def _notice(self, _runtime: object, effect: object) -> None:
        if isinstance(effect, ConfigChanged):
            self._follow()

    def _follow(self) -> None:
        image = self.machine.image
        self.settings.set_dynamic(image.config(BROKER, ""), image.config(BROKER, "1"))

    def stored(self, resource_type: int, name: str) -> dict[str, str]:
        """What the metadata holds for a resource."""
        return dict(self.machine.image.config(resource_type, name))

    def request(self, api: AnyApi, version: int | None = None, denied: tuple[ResourceType, ...] = ()) -> RequestContext:
        """The surroundings of a request of that API."""
        node = SimpleNamespace(id=1, settings=self.settings, is_controller=False)
        cluster = SimpleNamespace(image=self.machine.image, metadata=self.metadata, clock=self.clock, partitions={})
        ctx = DeniedContext(
            api,
            SERVED[api.key].versions[1] if version is None else version,
            correlation_id=1,
            client_id="test",
            connection=Connection("c", "PLAINTEXT", "127.0.0.1", 1),
            node=cast("Any", node),
            cluster=cast("Any", cluster),
        )
        ctx.denied = denied
        return ctx
