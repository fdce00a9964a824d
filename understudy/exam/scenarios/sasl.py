"""SASL: credentials that are accepted or rejected, and sessions that expire (KIP-368)."""

import base64
import re
import time
from collections.abc import Callable
from typing import Any, Final

from understudy.exam import security
from understudy.exam.driver import CallError, LibraryError
from understudy.exam.exercise import EXPIRY_MS, Exercise, NotExercised
from understudy.exam.level import Level
from understudy.exam.scenario import Play, scenario
from understudy.exam.scenarios.connection import LOST, RECONNECT, check_written
from understudy.exam.scenarios.values import numbered
from understudy.results import JournalEntry

ATTEMPTS: Final = 10
"""Maximum attempts with rejected credentials: each broker once, and a few more."""
ABOUT: Final = re.compile(r"auth|sasl|credential|token|password|certificate|ssl|tls|x509|handshake", re.IGNORECASE)
"""What an error must mention so that an application, or its log, points to the cause."""
REPORTED = "Reports that the authentication failed, and leaves further attempts to the application."
LOCKED = "The cause, and an account that is locked after too many attempts."
HOUR_S: Final = 3_600
PAUSE_S: Final = 0.25  # arbitrary: short beside a session
ROUNDS: Final = 30
"""Pauses that last two and a half sessions in total. The client's clock cannot be advanced."""


def refusals(exercise: Exercise, **options: Any) -> list[LibraryError]:
    """Return the errors that a producer with rejected credentials reports. Nothing may be acknowledged or written."""
    try:
        producer = exercise.producer(delivery_timeout_ms=exercise.timeout_ms // 2, **options)
        producer.send(numbered(5))
        producer.flush()
    except CallError as error:
        return [error.error]
    exercise.require(not any(outcome.acknowledged for outcome in producer.sent), "records are reported as written")
    exercise.require(not exercise.log_values(), "records were written")
    errors = [outcome.error for outcome in producer.sent if outcome.error is not None]
    waited_s = (exercise.timeout_ms - exercise.timeout_ms // 2 + EXPIRY_MS) / 1000
    exercise.require(bool(errors), f"no outcome {waited_s:g} s after delivery.timeout.ms")
    return errors


def require_cause(exercise: Exercise, errors: list[LibraryError]) -> None:
    """Require that one of the errors mentions the cause."""
    named = any(ABOUT.search(f"{error.code} {error.message}") for error in errors)
    exercise.require(named, f"the error does not mention the cause: {errors[0]}", Level.SHOULD)


def require_few_attempts(exercise: Exercise, api: str = "SaslAuthenticate") -> None:
    """Require that rejected credentials are not sent again and again."""
    refused = [entry for entry in exercise.journal(api=api) if entry.error]
    if not refused:
        return
    text = f"the broker refused {len(refused)} attempts"
    exercise.require(len(refused) <= ATTEMPTS, text, Level.SHOULD)


def connections(entries: list[JournalEntry]) -> dict[int, list[JournalEntry]]:
    """Return connection -> its requests."""
    by_connection: dict[int, list[JournalEntry]] = {}
    for entry in entries:
        by_connection.setdefault(entry.connection, []).append(entry)
    return by_connection


# --- who is let in ---------------------------------------------------------------------------------------------------


def register_mechanism(name: str, needs: str, options: Callable[[], Any]) -> Play:
    """Register the scenario of one mechanism without faults."""

    @scenario(
        f"sasl/{name}",
        f"The listener asks for {options()['sasl_mechanism']}",
        rule="core G; SaslClientAuthenticator",
        needs=f"producer {needs}",
        steers="listeners",
        correct="SaslHandshake, SaslAuthenticate, and then as on any connection.",
        loss=LOST,
    )
    def play(exercise: Exercise) -> None:
        """Use the right credentials."""
        check_written(exercise, **options())
        met = any(entry.api == "SaslAuthenticate" and not entry.error for entry in exercise.journal())
        exercise.require(met, "records were written without SaslAuthenticate")

    return play


register_mechanism("plain", "sasl_plain", lambda: security.password("PLAIN"))
register_mechanism("scram", "sasl_scram", lambda: security.password("SCRAM-SHA-256"))
register_mechanism("token", "sasl_oauthbearer", lambda: security.bearer(lifetime_s=HOUR_S))


@scenario(
    "sasl/handshake-lost",
    "The connection ends during SaslHandshake",
    rule="NetworkClient: reconnect.backoff.ms",
    needs="producer sasl_plain",
    steers="listeners",
    level=Level.SHOULD,
    correct=RECONNECT,
    loss=LOST,
)
def handshake_lost(exercise: Exercise) -> None:
    """End the connection, which is not a rejection."""
    exercise.fault(api="SaslHandshake", disconnect="close")
    check_written(exercise, Level.SHOULD, **security.password("PLAIN"))


@scenario(
    "sasl/authenticate-unanswered",
    "SaslAuthenticate is not answered",
    rule="NetworkClient: request.timeout.ms; socket.connection.setup.timeout.ms",
    needs="producer sasl_plain",
    steers="listeners",
    level=Level.SHOULD,
    correct="Closes the connection after its time-out and authenticates on another one.",
    loss=LOST,
)
def authenticate_unanswered(exercise: Exercise) -> None:
    """Leave the connection open and silent."""
    exercise.fault(api="SaslAuthenticate", drop=True)
    check_written(exercise, Level.SHOULD, **security.password("PLAIN"))


# --- who is not ------------------------------------------------------------------------------------------------------


def register_refusal(name: str, title: str, needs: str, options: Callable[[], Any], api: str = "") -> Play:
    """Register a scenario with credentials that the broker rejects. `api`: the request that it rejects."""

    @scenario(
        f"sasl/{name}",
        title,
        rule="core G; SaslAuthenticationException is not retriable",
        needs=f"producer {needs}",
        steers="listeners",
        correct=REPORTED,
        loss=LOCKED,
    )
    def play(exercise: Exercise) -> None:
        """Reject each attempt; a library may validate a token itself, and send no request at all."""
        errors = refusals(exercise, **options())
        require_cause(exercise, errors)
        require_few_attempts(exercise, api or "SaslAuthenticate")

    return play


WRONG = "wrong"
register_refusal(
    "wrong-password", "The password is wrong", "sasl_plain", lambda: security.password("PLAIN", secret=WRONG)
)
register_refusal(
    "wrong-scram-password",
    "The password is wrong, and the mechanism SCRAM",
    "sasl_scram",
    lambda: security.password("SCRAM-SHA-256", secret=WRONG),
)
register_refusal(
    "mechanism-not-enabled",
    "The listener does not offer the mechanism",
    "sasl_scram",
    lambda: security.password("SCRAM-SHA-512"),
    "SaslHandshake",
)
register_refusal(
    "expired-token", "The token has expired", "sasl_oauthbearer", lambda: security.bearer(lifetime_s=-HOUR_S // 2)
)


@scenario(
    "sasl/consumer-wrong-password",
    "The password of a consumer is wrong",
    rule="core G; SaslAuthenticationException is not retriable",
    needs="consumer sasl_plain",
    steers="listeners",
    level=Level.SHOULD,
    correct="Reports the failure from poll, or through its callback for errors.",
    loss="A consumer that reads nothing, and does not report why.",
)
def consumer_wrong_password(exercise: Exercise) -> None:
    """Use a wrong password for a consumer, which has nothing else to report."""
    exercise.write(numbered(5))
    errors: list[LibraryError] = []
    until = time.monotonic() + exercise.timeout_ms / 1_000 / 2  # half of a case: as long as a producer has above
    try:
        consumer = exercise.consumer(**security.password("PLAIN", secret=WRONG))
        consumer.assign()
        while not consumer.errors and time.monotonic() < until:
            consumer.poll()
        exercise.require(not consumer.read, "records were read")
        errors = consumer.errors
    except CallError as error:
        errors = [error.error]
    if not any(entry.error for entry in exercise.journal(api="SaslAuthenticate")):
        raise NotExercised("the consumer sent no password")
    exercise.require(bool(errors), "the consumer reports no error")
    require_cause(exercise, errors)
    require_few_attempts(exercise)


@scenario(
    "sasl/broker-without-password",
    "The broker cannot prove that it knows the password",
    rule="RFC 5802 section 3: ServerSignature; ScramSaslClient",
    needs="producer sasl_scram",
    steers="listeners",
    correct="Compares the server's signature, and ends the connection.",
    loss="Records, written to a server that only pretends to be the broker.",
)
def broker_without_password(exercise: Exercise) -> None:
    """Send zeros as the signature in the last SCRAM message, like a broker that accepts anyone."""
    zeros = "v=" + "A" * 43 + "="  # base64 of the 32 bytes of a SHA-256
    exercise.fault(api="SaslAuthenticate", skip=1, times=None, alter={"auth_bytes": zeros})
    errors = refusals(exercise, **security.password("SCRAM-SHA-256"))
    require_signature_met(exercise)
    require_cause(exercise, errors)


def require_signature_met(exercise: Exercise) -> None:
    """Raise NotExercised unless a connection got the forged signature; none may continue after it."""
    met = False
    for entries in connections(exercise.journal()).values():
        exchange = [entry for entry in entries if entry.api == "SaslAuthenticate"]
        met = met or (len(exchange) > 1 and bool(exchange[1].fault))
        later = [entry.api for entry in entries if exchange and entry.id > exchange[-1].id and exchange[-1].fault]
        exercise.require(not later, f"{', '.join(later[:1])} was sent to a broker that is not known")
    if not met:
        raise NotExercised("no connection got as far as the server's signature")


@scenario(
    "sasl/foreign-nonce",
    "The server's nonce does not continue the client's",
    rule="RFC 5802 section 5.1; ScramSaslClient",
    needs="producer sasl_scram",
    steers="listeners",
    correct="Ends the connection, without a proof of the password.",
    loss="Proofs that can be collected: the password is looked for without the broker.",
)
def foreign_nonce(exercise: Exercise) -> None:
    """Answer the client's first message with a nonce of the server's own."""
    # Any nonce and salt; 4096 iterations, the least that Kafka's clients accept (ScramMechanism).
    first = f"r={'x' * 32},s={base64.b64encode(b'0123456789abcdef').decode()},i=4096"
    exercise.fault(api="SaslAuthenticate", times=None, alter={"auth_bytes": first})
    errors = refusals(exercise, **security.password("SCRAM-SHA-256"))
    exercise.require_exercised()
    for entries in connections(exercise.journal()).values():
        proofs = [each for each in entries if each.api == "SaslAuthenticate"][1:]
        exercise.require(not proofs, "the client's proof was sent in reply to a nonce that is not its own")
    exercise.require(bool(errors), "the library reports no error", Level.SHOULD)


# --- sessions that end -----------------------------------------------------------------------------------------------

AGAIN = "Authenticates again, on the same connection, before session_lifetime_ms is over."
CLOSED = "A connection that the broker closes, with its requests in flight, whenever a session expires."


def require_again(exercise: Exercise, client: str) -> None:
    """Require that a connection of the client has authenticated more than once."""
    by_connection = connections(exercise.journal(client))
    handshakes = [sum(entry.api == "SaslHandshake" for entry in entries) for entries in by_connection.values()]
    connection_count = len(by_connection)
    text = (
        f"each of {connection_count} connections authenticated once, and the broker closed those whose session was over"
    )
    exercise.require(any(count > 1 for count in handshakes), text, Level.SHOULD)


@scenario(
    "sasl/session-ends",
    "The session of a producer lasts three seconds",
    rule="KIP-368; SaslClientAuthenticator: 85 % to 95 % of the session's lifetime",
    needs="producer idempotence sasl_plain",
    steers="listeners",
    level=Level.SHOULD,
    correct=AGAIN,
    loss=CLOSED,
)
def session_ends(exercise: Exercise) -> None:
    """Write for seven seconds, four records a second."""
    producer = exercise.producer(idempotent=True, **security.password("PLAIN", listener=security.SESSIONS))
    for value in numbered(ROUNDS):
        producer.send([value])
        producer.flush()
        time.sleep(PAUSE_S)
    exercise.require_no_loss(producer)
    exercise.require_acknowledged(producer, Level.SHOULD)
    exercise.require_once_in_order(producer)
    require_again(exercise, producer.name)


@scenario(
    "sasl/consumer-session-ends",
    "The session of a consumer lasts three seconds",
    rule="KIP-368; SaslClientAuthenticator: 85 % to 95 % of the session's lifetime",
    needs="consumer sasl_plain",
    steers="listeners",
    level=Level.SHOULD,
    correct=AGAIN,
    loss=CLOSED,
)
def consumer_session_ends(exercise: Exercise) -> None:
    """Read for seven seconds."""
    consumer = exercise.consumer(**security.password("PLAIN", listener=security.SESSIONS))
    consumer.assign()
    values = numbered(ROUNDS)
    until = time.monotonic() + ROUNDS * PAUSE_S
    for value in values:
        exercise.write([value])
        consumer.poll(int(PAUSE_S * 1_000))
    while time.monotonic() < until:
        consumer.poll()
    consumer.poll_for(len(values))
    exercise.require(consumer.values() == values, f"read {len(consumer.read)} of {len(values)} records, each once")
    require_again(exercise, consumer.name)
