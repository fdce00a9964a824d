"""`understudy consume TOPIC`: prints records in a format like kcat's."""

import base64
import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any

from pipeline.commands.progress import refuse
from pipeline.live.group_member import GroupMember
from pipeline.live.reader import EARLIEST, LATEST, TopicReader, no_broker, records_of
from pipeline.transfer.security import SecurityError, read_security
from pipeline.transfer.wire import WireError
from protocol.records.records import Record

PROGRAM = "understudy consume"
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\"}
Formatter = Callable[[str, int, Record], bytes]


class FormatError(ValueError):
    """A format that does not exist; the message is for the user."""


def main(arguments: Mapping[str, Any]) -> int:
    """Run the command; exit code 0: done. Exits with 2 for invalid arguments, with 1 for a failure."""
    try:
        form = formatter(arguments["format"])
        security = read_security(arguments["client_config"])
        with TopicReader(arguments["bootstrap_server"], security=security) as cluster:
            count = _consume(cluster, arguments, form)
    except (FormatError, SecurityError) as error:
        refuse(PROGRAM, error)
    except WireError as error:
        refuse(PROGRAM, no_broker(error), 1)
    wanted = arguments["count"]
    if wanted is not None and count < wanted:
        refuse(PROGRAM, f"{count} of {wanted} records; --follow waits for the others", 1)
    return 0


def _consume(cluster: TopicReader, arguments: Mapping[str, Any], form: Formatter) -> int:
    topic, wanted = arguments["topic"], arguments["count"]
    start = EARLIEST if arguments["from_beginning"] else LATEST
    follow = arguments["follow"] or not arguments["from_beginning"]
    if topic not in cluster.topics:
        raise WireError(f"the topic {topic} does not exist; `understudy produce {topic}` creates it")
    count, output = 0, sys.stdout.buffer
    with ExitStack() as opened:
        member = None
        if arguments["group"] is not None:
            member = opened.enter_context(closing(GroupMember(cluster, arguments["group"], topic, start)))
        for partition, record in records_of(cluster, topic, start, follow=follow, member=member):
            if record is None:
                output.flush()
                continue
            output.write(form(topic, partition, record))
            count += 1
            if count == wanted:
                break
        output.flush()
    return count


def formatter(form: str) -> Formatter:
    """Return the function that formats a record of a topic and partition. Raises FormatError."""
    if form == "json":
        return as_json
    parts = re.split(r"(%.?|\\.?)", form, flags=re.DOTALL)
    for token in parts[1::2]:
        if token[0] == "%" and token[1:] not in {*"tpoksThKS%"}:
            raise FormatError(f"--format has no {token}; there are %t %p %o %k %s %h %T %K %S %%, and json")
        if token[0] == "\\" and token[1:] not in _ESCAPES:
            raise FormatError(rf"--format has no {token}; there are \n \t \r \\")

    def formatted(topic: str, partition: int, record: Record) -> bytes:
        values = {
            "%t": topic.encode(), "%p": b"%d" % partition, "%o": b"%d" % record.offset,
            "%T": b"%d" % record.timestamp_ms, "%k": record.key or b"", "%s": record.value or b"",
            "%K": b"%d" % _size(record.key), "%S": b"%d" % _size(record.value), "%%": b"%",
            "%h": b",".join(b"%s=%s" % (name.encode(), _shown(value)) for name, value in record.headers),
        } | {f"\\{name}": value for name, value in _ESCAPES.items()}  # fmt: skip
        return b"".join(values[part] if at % 2 else part.encode() for at, part in enumerate(parts))

    return formatted


def as_json(topic: str, partition: int, record: Record) -> bytes:
    """Return a JSON document and a newline; bytes that are no UTF-8 are {"base64": ...}."""
    document = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
    }
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _shown(value: bytes | None) -> bytes:
    return b"NULL" if value is None else value


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
