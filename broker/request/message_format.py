"""Message formats before 0.11, in releases that supported them: those of topics, and those of old clients.

The log always has format v2; records are converted on the way in and out.
"""

import re
from typing import Final

from broker.request.context import RequestContext
from broker.settings import ConfigResourceType
from broker.settings.releases import Behaviour
from protocol import features
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import MAGIC_V2, magic_of
from protocol.records.conversion import batch_of_messages, messages_of_batches
from protocol.records.errors import (
    BatchDamagedError,
    DecompressedTooLargeError,
    MalformedRecordsError,
    UnreadableCompressionError,
)
from protocol.types import Buffer

FORMAT: Final = "message.format.version"
_DEFAULT_FORMAT: Final = "log.message.format.version"
DOWN_CONVERSION: Final = "message.downconversion.enable"
_DEFAULT_DOWN_CONVERSION: Final = "log.message.downconversion.enable"
_RELEASE: Final = re.compile(r"(\d+)\.(\d+)")


def topic_magic(topic: str, ctx: RequestContext) -> int:
    """Return the magic of a topic's records, if the emulated release honours the setting (KIP-724)."""
    if ctx.release.has(Behaviour.MESSAGE_FORMAT_IGNORED):
        return MAGIC_V2
    wanted = ctx.cluster.image.config(ConfigResourceType.TOPIC, topic).get(FORMAT) or ctx.node.settings.get(
        _DEFAULT_FORMAT
    )
    release_match = None if wanted is None else _RELEASE.match(str(wanted))
    if release_match is None:
        return MAGIC_V2
    release = (int(release_match[1]), int(release_match[2]))
    # The releases that brought the formats: KIP-32 in 0.10, KIP-98 in 0.11.
    return MAGIC_V2 if release >= (0, 11) else 1 if release >= (0, 10) else 0


def check_producer(topic: str, ctx: RequestContext) -> None:
    """Refuse idempotent producers for topics with a format before v2.

    Raises:
        KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT (KIP-185's case).
    """
    if topic_magic(topic, ctx) < MAGIC_V2:
        raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)


def check_time(topic: str, ctx: RequestContext) -> None:
    """Refuse lookups by timestamp for topics of magic 0, whose records have none.

    Raises:
        KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT.
    """
    if topic_magic(topic, ctx) < 1 and not features.list_offsets_counts_segments(ctx.version):
        raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)


def upconvert(records: memoryview) -> memoryview:
    """Convert the records of a Produce request before v3, which may have older formats, to format v2.

    Raises:
        KafkaError: CORRUPT_MESSAGE, INVALID_RECORD.
    """
    if not 0 <= magic_of(records) < MAGIC_V2:
        return records
    try:
        return memoryview(batch_of_messages(records))
    except (DecompressedTooLargeError, MalformedRecordsError) as invalid:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(invalid)) from invalid
    except (BatchDamagedError, UnreadableCompressionError) as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _converts_down(topic: str, ctx: RequestContext) -> bool:
    """Whether a topic's records are down-converted: its own setting, else the broker's (KIP-283)."""
    own = ctx.cluster.image.config(ConfigResourceType.TOPIC, topic).get(DOWN_CONVERSION)
    return ctx.node.settings.get(_DEFAULT_DOWN_CONVERSION) is not False if own is None else own.lower() != "false"


def downconvert(buffers: list[memoryview], topic: str, offset: int, ctx: RequestContext) -> list[Buffer]:
    """Convert stored batches to the format of the fetcher's version and of the topic.

    Raises:
        KafkaError: UNSUPPORTED_VERSION if down-conversion is disabled; UNSUPPORTED_COMPRESSION_TYPE for zstd in an old
            format.
    """
    wanted = features.fetch_magic(ctx.version)
    magic = min(topic_magic(topic, ctx), wanted) if buffers else MAGIC_V2
    if magic >= MAGIC_V2:
        return list(buffers)
    if wanted < MAGIC_V2 and not _converts_down(topic, ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    try:
        # A view, like slices of the log: the journal recognizes records in a response by that, even small ones.
        return [memoryview(messages_of_batches(b"".join(buffers), magic, offset))]
    except UnreadableCompressionError as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE) from error
    except DecompressedTooLargeError as large:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from large
