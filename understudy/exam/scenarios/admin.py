"""Administration: what is reported as done is done, and rejected requests are reported."""

from control_api.fault_actions import Disconnect
from understudy.exam.driver import CallError, LibraryError
from understudy.exam.exercise import Exercise
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.values import MOST_ATTEMPTS

NEEDS = "admin"
AGAIN = "Repeats the request, at the new controller if the response names another one."
LOSS = "An application that continues without its topic, or fails although the cluster is healthy."
EXISTS = "TOPIC_ALREADY_EXISTS"
PARTITIONS = 3
"""Of a new topic: not the default, 1, so that it shows whether the number was sent."""


def create(exercise: Exercise, topic: str = "made", partitions: int = PARTITIONS) -> LibraryError | None:
    """Create a topic; return the library's error."""
    servers, timeout_ms = exercise.cluster.bootstrap_servers, exercise.timeout_ms
    try:
        exercise.driver.call(
            "create_topic", bootstrap_servers=servers, topic=topic, partitions=partitions, timeout_ms=timeout_ms
        )
    except CallError as error:
        return error.error
    return None


def partitions_of(exercise: Exercise, topic: str) -> int:
    """Return the number of partitions of a topic; 0 if it does not exist."""
    topics = [info for info in exercise.cluster.topics.list() if info.name == topic]
    return len(topics[0].partitions) if topics else 0


def check_created(exercise: Exercise, *, may_exist: bool = False) -> None:
    """Require that the topic exists and is reported as created, or after a lost response as existing."""
    error = create(exercise)
    exercise.require_exercised()
    there = partitions_of(exercise, "made")
    exercise.require(
        error is not None or there == PARTITIONS, f"reported as created, and the topic has {there} partitions"
    )
    accepted = error is None or (may_exist and EXISTS in f"{error.code} {error.message}".upper().replace(" ", "_"))
    accepted = accepted or (may_exist and error is not None and "EXIST" in f"{error.code} {error.message}".upper())
    exercise.require(accepted, f"the library reports {error}", Level.SHOULD)


@scenario(
    "admin/create-topic",
    "A topic with three partitions",
    rule="core C.1",
    needs=NEEDS,
    correct="Creates it.",
    loss=LOSS,
)
def create_topic(exercise: Exercise) -> None:
    """Play without a fault, as the positive control."""
    check_created(exercise)
    exercise.require(partitions_of(exercise, "made") == PARTITIONS, "the topic is not there")


@scenario(
    "admin/topic-exists",
    "A topic that exists is created",
    rule="core C.1; TOPIC_ALREADY_EXISTS",
    needs=NEEDS,
    correct="Reports the error.",
    loss="An application that believes the topic to be new, with the partitions that it requested.",
)
def topic_exists(exercise: Exercise) -> None:
    """Create it with another number of partitions."""
    error = create(exercise, "t")
    exercise.require(error is not None, "a topic that existed is reported as created")


for _code in ("POLICY_VIOLATION", "INVALID_REPLICATION_FACTOR"):

    def _refused_for_good(exercise: Exercise, code: str = _code) -> None:
        exercise.fault(api="CreateTopics", error=code, times=None)
        error = create(exercise)
        exercise.require_exercised()
        exercise.require(error is not None, "a topic that was refused is reported as created")
        attempts = sum(entry.error == code for entry in exercise.journal(api="CreateTopics"))
        exercise.require(attempts < MOST_ATTEMPTS, f"the request was sent {attempts} times", Level.SHOULD)

    scenario(
        f"admin/{_code.lower().replace('_', '-')}",
        "CreateTopics is rejected permanently",
        rule=f"core C.1; {_code}",
        needs=NEEDS,
        correct="Reports the error.",
        loss=LOSS,
    )(_refused_for_good)


@scenario(
    "admin/request-timed-out",
    "CreateTopics is answered with REQUEST_TIMED_OUT",
    rule="core C.1; KafkaAdminClient: TimeoutException",
    needs=NEEDS,
    correct="Reports the error, or repeats the request.",
    loss=LOSS,
)
def request_timed_out(exercise: Exercise) -> None:
    """Answer so once, without creating the topic."""
    exercise.fault(api="CreateTopics", error="REQUEST_TIMED_OUT")
    error = create(exercise)
    exercise.require_exercised()
    there = partitions_of(exercise, "made")
    exercise.require(
        error is not None or there == PARTITIONS, f"reported as created, and the topic has {there} partitions"
    )


for _code, _kip in (("NOT_CONTROLLER", "KIP-590"), ("THROTTLING_QUOTA_EXCEEDED", "KIP-599")):

    def _refused(exercise: Exercise, code: str = _code) -> None:
        exercise.fault(api="CreateTopics", error=code)
        check_created(exercise)

    scenario(
        f"admin/{_code.lower().replace('_', '-')}",
        f"CreateTopics is answered with {_code}",
        rule=f"{_kip}; Errors: retriable",
        needs=NEEDS,
        level=Level.SHOULD,
        correct=AGAIN,
        loss=LOSS,
    )(_refused)


@scenario(
    "admin/request-lost",
    "The connection ends before CreateTopics is served",
    rule="KafkaAdminClient: retries",
    needs=NEEDS,
    level=Level.SHOULD,
    correct=AGAIN,
    loss=LOSS,
)
def request_lost(exercise: Exercise) -> None:
    """End the connection with a TCP reset."""
    exercise.fault(api="CreateTopics", disconnect="reset")
    check_created(exercise)


@scenario(
    "admin/answer-lost",
    "The topic is created, the answer is lost",
    rule="KafkaAdminClient: retries",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Repeats the request, and reports success or that the topic exists.",
    loss=LOSS,
)
def answer_lost(exercise: Exercise) -> None:
    """Lose the response together with its connection."""
    exercise.fault(api="CreateTopics", apply_then=Disconnect())
    check_created(exercise, may_exist=True)


@scenario(
    "admin/silent-broker",
    "CreateTopics is not answered",
    rule="KafkaAdminClient: request.timeout.ms, default.api.timeout.ms",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Closes the connection after request.timeout.ms and repeats the request within default.api.timeout.ms.",
    loss="An application that waits forever.",
    slow=True,
)
def silent_broker(exercise: Exercise) -> None:
    """Leave one request without a response."""
    exercise.fault(api="CreateTopics", drop=True)
    check_created(exercise)
