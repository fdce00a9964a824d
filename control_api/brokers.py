"""Verbs about brokers, controllers and coordinators."""

from typing import Annotated, Literal, Required, TypedDict

from control_api.fields import About
from control_api.verb import Verb

State = Literal["running", "paused", "down"]


class NewBroker(TypedDict, total=False):
    """A broker to add."""

    # 1000: as many as `serve` starts.
    id: Annotated[int, About("id of the broker; by default the next free id", least=1, most=1000)]
    rack: Annotated[str | None, About("rack of the broker")]
    port: Annotated[int, About("port of its first listener; 0: any free port", least=0, most=65535)]


class CoordinatorMove(TypedDict, total=False):
    """Move of the coordinator of a group or a transactional id."""

    type: Required[Annotated[Literal["group", "transaction"], About("what the key names")]]
    key: Required[
        Annotated[str, About("group id or transactional id", least=1, like="a group id or a transactional id")]
    ]
    broker: Required[Annotated[int, About("id of the new coordinator; may be the current one", least=1)]]
    loading_ms: Annotated[
        int,
        About(
            "how long the coordinator responds COORDINATOR_LOAD_IN_PROGRESS, by the cluster's clock",
            least=0,
            most=2**31 - 1,
            default=0,
        ),
    ]


class FailedLogDir(TypedDict, total=False):
    """A log directory of a broker that is to fail."""

    directory: Annotated[str, About("path of the directory, as in log.dirs; by default the last one", least=1)]


class BrokerState(TypedDict):
    """A broker after it was killed, stopped, started, paused or resumed."""

    id: int
    state: State


class NewController(TypedDict, total=False):
    """A controller to add."""

    id: Annotated[int, About("id of the controller; by default the next free id", least=1, most=2**31 - 1)]


class ControllerRemoved(TypedDict):
    """A controller that was ended for good."""

    id: int
    state: Literal["removed"]


class ControllerState(TypedDict):
    """A controller after it was killed, stopped, started, paused or resumed."""

    id: int
    state: State
    controller: Annotated[int, About("id of the active controller; -1: there is none now")]


class BrokerRemoved(TypedDict):
    """A broker that was removed from the cluster."""

    id: int
    state: Literal["removed"]


class CoordinatorMoved(TypedDict):
    """The new coordinator of a key."""

    type: Literal["group", "transaction"]
    key: str
    broker: int
    partition: Annotated[int, About("partition of the coordinator's internal topic")]
    loading_ms: int


VERBS = (
    Verb("brokers add", "POST", "/v1/brokers", "brokers.add(...)", "add an empty broker", body=NewBroker,
         answer="cluster.Broker"),
    Verb("brokers remove", "DELETE", "/v1/brokers/{broker}", "brokers[broker].remove()",
         "remove a broker permanently: its leaders move, and it is unregistered", answer=BrokerRemoved),
    Verb("brokers kill", "POST", "/v1/brokers/{broker}/kill", "brokers[broker].kill()",
         "kill a broker: connections are reset, memory is lost", answer=BrokerState),
    Verb("brokers stop", "POST", "/v1/brokers/{broker}/stop", "brokers[broker].stop()",
         "stop a broker by a controlled shutdown", answer=BrokerState),
    Verb("brokers start", "POST", "/v1/brokers/{broker}/start", "brokers[broker].start()",
         "start a broker again, with log recovery", answer=BrokerState),
    Verb("brokers pause", "POST", "/v1/brokers/{broker}/pause", "brokers[broker].pause()",
         "make a broker hang: it accepts connections, but reads no requests", answer=BrokerState),
    Verb("brokers fail-log-dir", "POST", "/v1/brokers/{broker}/log-dir/fail", "brokers[broker].fail_log_dir(...)",
         "fail a broker's log directory: KAFKA_STORAGE_ERROR, its leaders move, and the broker goes on",
         body=FailedLogDir, answer=BrokerState),
    Verb("brokers repair-log-dir", "POST", "/v1/brokers/{broker}/log-dir/repair", "brokers[broker].repair_log_dir()",
         "repair failed log directories: as in Kafka, the broker restarts to use them again", answer=BrokerState),
    Verb("brokers resume", "POST", "/v1/brokers/{broker}/resume", "brokers[broker].resume()", "resume a paused broker",
         answer=BrokerState),
    Verb("controllers add", "POST", "/v1/controllers", "controllers.add(...)",
         "add a controller, which observes until AddRaftVoter makes it a voter", body=NewController,
         answer="cluster.Controller"),
    Verb("controllers remove", "DELETE", "/v1/controllers/{controller}", "controllers[controller].remove()",
         "end a controller that is not a voter, permanently", answer=ControllerRemoved),
    Verb("controllers kill", "POST", "/v1/controllers/{controller}/kill", "controllers[controller].kill()",
         "kill a controller of several: the others miss it, and elect another, after some seconds",
         answer=ControllerState),
    Verb("controllers stop", "POST", "/v1/controllers/{controller}/stop", "controllers[controller].stop()",
         "stop a controller of several; if it is the active one, another is elected at once", answer=ControllerState),
    Verb("controllers start", "POST", "/v1/controllers/{controller}/start", "controllers[controller].start()",
         "start a controller again; it follows the active one", answer=ControllerState),
    Verb("controllers pause", "POST", "/v1/controllers/{controller}/pause", "controllers[controller].pause()",
         "make a controller of several hang: the others miss it, and elect another, after some seconds",
         answer=ControllerState),
    Verb("controllers resume", "POST", "/v1/controllers/{controller}/resume", "controllers[controller].resume()",
         "resume a paused controller; it follows the active one", answer=ControllerState),
    Verb("coordinators move", "POST", "/v1/coordinators/move", "coordinators.move(...)",
         "move the coordinator of a group or a transactional id", body=CoordinatorMove,
         answer=CoordinatorMoved),
)  # fmt: skip
