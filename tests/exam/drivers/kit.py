"""The loop of a driver in Python: reads commands, calls the method of the same name, writes answers."""

# ruff: noqa: T201 -- answers go to stdout

import base64
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


class Refused(Exception):
    """An error of the library: its class, Kafka's name of the code if there is one, and a message."""

    def __init__(self, kind: str, code: str | None, message: str) -> None:
        super().__init__(message)
        self.kind, self.code, self.message = kind, code, message

    def as_json(self) -> dict[str, Any]:
        """The error object of an answer."""
        return {"class": self.kind, "code": self.code, "message": self.message}


class Unsupported(Exception):
    """The library cannot do it."""


FATAL = frozenset({"ProducerFenced", "InvalidProducerEpoch", "OutOfOrderSequenceNumber"})
"""Classes of both clients in pure Python, whose names may end in `Error`."""


def refused(error: Exception, *timeouts: type[Exception]) -> Refused:
    """An exception of kafka-python or aiokafka, whose hierarchies are alike."""
    name = type(error).__name__
    if name.removesuffix("Error") in FATAL:
        kind = "fatal"
    elif isinstance(error, timeouts):
        kind = "timeout"
    else:
        kind = "retriable" if getattr(error, "retriable", False) else "abortable"
    return Refused(kind, name, f"{name}: {error}")


def record_json(
    place: tuple[str, int, int],
    key: bytes | None,
    value: bytes | None,
    timestamp: int,
    headers: Iterable[tuple[str, bytes | None]] | None,
) -> dict[str, Any]:
    """A record as `poll` returns it; `place` is its topic, partition and offset."""
    topic, partition, offset = place
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "key": text(key),
        "value": text(value),
        "timestamp": timestamp,
        "headers": [[name, text(each)] for name, each in headers or ()],
    }


def text(value: bytes | None) -> str | None:
    """Bytes as JSON holds them."""
    return None if value is None else value.decode("utf-8", "replace")


def raw(value: str | None) -> bytes | None:
    """Text of a command as libraries take it."""
    return None if value is None else value.encode()


def headers_of(record: Mapping[str, Any]) -> list[tuple[str, bytes | None]]:
    """The headers of a record of `send`."""
    return [(name, raw(value)) for name, value in record.get("headers", ())]


SECURED = ("tls", "sasl_plain", "sasl_scram", "sasl_oauthbearer")
"""The capabilities of a library that talks TLS and knows each mechanism of the exam."""


def expiry(token: str) -> float:
    """When a token expires, in seconds since 1970."""
    claims = token.split(".")[1]
    return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])


PURE_PYTHON = (
    "producer", "idempotence", "transactions", "send_offsets", "consumer", "read_committed", "offset_reset", "seek",
    "reassign", "resubscribe", "max_records", "compression", "null_values",
    "groups", "assignment", "static_members", "commit_offsets", "auto_commit", "admin",
    *SECURED,
)  # fmt: skip
"""The capabilities of both clients in pure Python."""


def sasl(options: Mapping[str, Any], token: Callable[[str], object]) -> dict[str, Any]:
    """The arguments of both clients in pure Python for SASL; `token` makes a provider of the exam's token."""
    if "sasl_mechanism" not in options:
        return {}
    arguments = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": options["sasl_mechanism"]}
    if "sasl_token" in options:
        return {**arguments, "sasl_oauth_token_provider": token(options["sasl_token"])}
    user, password = options["sasl_username"], options["sasl_password"]
    return {**arguments, "sasl_plain_username": user, "sasl_plain_password": password}


def polled_json(polled: Mapping[Any, Iterable[Any]]) -> dict[str, Any]:
    """The records that both clients in pure Python return by partition, as the result of `poll`."""
    records = [
        record_json(
            (record.topic, record.partition, record.offset), record.key, record.value, record.timestamp, record.headers
        )
        for records in polled.values()
        for record in records
    ]
    return {"records": records, "errors": []}


def partitions_json(assignment: Iterable[Any]) -> dict[str, Any]:
    """Partitions, as the result of `assignment`."""
    return {"partitions": [{"topic": each.topic, "partition": each.partition} for each in assignment]}


class Base:
    """A driver: a subclass has a method for each command, which returns the result or None."""

    library, version = "unknown", ""
    capabilities: tuple[str, ...] = ()

    def hello(self, protocol: int) -> Mapping[str, Any]:  # noqa: ARG002 - a field of the command
        """Introduce the library."""
        return {
            "protocol": 1,
            "library": self.library,
            "version": self.version,
            "capabilities": list(self.capabilities),
        }

    def refusal(self, error: Exception) -> Refused:
        """The library's exception as an error of the contract."""
        return Refused("other", None, f"{type(error).__name__}: {error}")

    def run(self) -> None:
        """Answer commands until `quit` or the end of stdin."""
        for line in sys.stdin:
            command = json.loads(line)
            number, name = command.pop("id"), command.pop("command")
            print(json.dumps({"id": number, **self.answer(name, command)}), flush=True)
            if name == "quit":
                return

    def answer(self, name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to one command, without its id."""
        if name == "quit":
            return {"result": {}}
        method = getattr(self, name, None)
        if method is None:
            return {"unsupported": f"this driver has no {name}"}
        try:
            return {"result": method(**fields) or {}}
        except Unsupported as reason:
            return {"unsupported": str(reason)}
        except Refused as refused:
            return {"error": refused.as_json()}
        except Exception as error:  # noqa: BLE001 - each exception of the library is its answer
            return {"error": self.refusal(error).as_json()}
