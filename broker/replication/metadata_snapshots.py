"""Snapshots of the metadata log, so that it does not grow forever (KIP-630).

A snapshot is written after ``metadata.log.max.record.bytes.between.snapshots`` of records, or
``metadata.log.max.snapshot.interval.ms`` after the first record that the last snapshot does not have (Kafka:
SnapshotGenerator). The oldest snapshot, and the log before the second oldest, are deleted once log and snapshots exceed
``metadata.max.retention.*`` (KafkaRaftLog.maybeClean).
"""

from collections.abc import Callable
from contextlib import suppress

from broker.coordination.metadata.features import METADATA_VERSION
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.snapshot import records_of
from broker.replication.metadata_log import usable_snapshot
from broker.settings import BrokerSettings
from broker.time.clock import Clock
from broker.time.timers import Timer
from protocol.errors import KafkaError
from protocol.log_records.metadata import LATEST_METADATA_VERSION, MetadataCodec
from protocol.log_records.quorum import is_whole, quorum_records, snapshot, snapshot_time_ms
from storage.log import retention
from storage.log.partition_log import PartitionLog
from storage.quorum_files import Snapshot, latest_snapshot, snapshot_path, snapshots


class MetadataSnapshots:
    """Writes and deletes snapshots while the controller's log is open."""

    def __init__(
        self, log: PartitionLog, settings: BrokerSettings, clock: Clock, image: Callable[[], ClusterImage]
    ) -> None:
        """``image`` returns the metadata image; while it is behind the end of the log, no snapshot is written."""
        self._log, self._settings, self._clock, self._image = log, settings, clock, image
        self._files = log.context.files
        self._new_bytes = 0
        self._timer: Timer | None = None

    def written(self, size_bytes: int) -> None:
        """Note that records of this size were appended after the last snapshot."""
        self._new_bytes += size_bytes
        now_ms, interval_ms = self._clock.now_ms(), self._settings.long("metadata.log.max.snapshot.interval.ms")
        if self._new_bytes >= self._settings.long("metadata.log.max.record.bytes.between.snapshots"):
            self._plan(now_ms)  # in a later turn: the image does not have the records yet
        elif interval_ms and self._timer is None:
            self._plan(now_ms + interval_ms)

    def close(self) -> None:
        """Stop writing snapshots."""
        if self._timer is not None:
            self._timer.cancel()

    def _plan(self, at_ms: int) -> None:
        if self._timer is not None:
            if self._timer.at_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer = self._clock.call_at(at_ms, self._due)

    def _due(self) -> None:
        self._timer = None
        with suppress(KafkaError):  # the log directory went offline, which the cluster has noted
            self.take()
            self.clean()

    def take(self) -> bool:
        """Write a snapshot up to the log's end; return false if there is one already, or the image is behind."""
        log, image, last = self._log, self._image(), latest_snapshot(self._files)
        end_offset = log.log_end_offset
        batches = list(log.reader.replay_from(end_offset - 1))
        if not batches or (last is not None and last.end_offset >= end_offset):
            return False
        if image.offset + 1 < end_offset and not batches[-1].is_control:
            return False
        codec = MetadataCodec(image.features.get(METADATA_VERSION, LATEST_METADATA_VERSION))
        values = [codec.encode(record)[1] or b"" for record in records_of(image)]
        contents = snapshot(
            values,
            self._clock.now_ms(),
            last_contained_ms=batches[-1].max_timestamp_ms,
            epoch=log.epochs.latest,
            quorum=self._quorum(usable_snapshot(log, self._files)),
        )
        with log.context.guard():
            self._files.replace(snapshot_path(end_offset, log.epochs.latest), contents)
        self._new_bytes = 0
        return True

    def _quorum(self, last: Snapshot | None) -> list[tuple[int, bytes]]:
        """Return the voters if recorded (kraft.version 1): the newest in the last snapshot and the log after it."""
        quorum_values = {} if last is None else dict(quorum_records(self._files.read_file(last.path)))
        already = 0 if last is None else last.end_offset
        for batch in self._log.reader.replay_from(max(self._log.log_start_offset, already)):
            if batch.is_control:
                quorum_values.update(quorum_records(bytes(batch.view)))
        return sorted(quorum_values.items())

    def clean(self) -> int:
        """Delete old snapshots, and the log before the next one, by the retention settings; return their number."""
        gone, known = 0, snapshots(self._files)
        sizes = [self._files.size(each.path) for each in known]
        limit_bytes, limit_ms = (
            self._settings.long("metadata.max.retention.bytes"),
            self._settings.long("metadata.max.retention.ms"),
        )
        while len(known) - gone > 1:
            written_ms = snapshot_time_ms(self._files.read_file(known[gone].path))
            too_large = 0 <= limit_bytes < self._log.segments.size + sum(sizes[gone:])
            too_old = limit_ms >= 0 and self._clock.now_ms() - written_ms > limit_ms
            if not (too_large or too_old):
                break
            if not is_whole(self._files.read_file(known[gone + 1].path)):
                break  # the next snapshot is damaged: only the log and this one have the metadata
            gone += 1
            self._log.delete_records_before(known[gone].end_offset)
            retention.run(self._log, self._clock.now_ms())
            with self._log.context.guard():
                self._files.remove(known[gone - 1].path)
        return gone
