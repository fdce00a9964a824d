import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** A remote tier in a folder (rsm.config.dir), for a real Kafka: 4.4.0's own LocalTieredStorage is in no published jar. */
public class FolderTier implements RemoteStorageManager {
    private Path folder;

    @Override
    public void configure(Map<String, ?> configs) {
        folder = Path.of(String.valueOf(configs.get("dir")));
    }

    private Path path(RemoteLogSegmentMetadata segment, String kind) {
        return folder.resolve(segment.remoteLogSegmentId().id() + "." + kind);
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        try {
            Files.createDirectories(folder);
            Files.copy(data.logSegment(), path(segment, "LOG"));
            Files.copy(data.offsetIndex(), path(segment, "OFFSET"));
            Files.copy(data.timeIndex(), path(segment, "TIMESTAMP"));
            Files.copy(data.producerSnapshotIndex(), path(segment, "PRODUCER_SNAPSHOT"));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), path(segment, "TRANSACTION"));
            }
            byte[] epochs = new byte[data.leaderEpochIndex().remaining()];
            data.leaderEpochIndex().duplicate().get(epochs);
            Files.write(path(segment, "LEADER_EPOCH"), epochs);
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        try {
            InputStream stream = opened(segment, "LOG");
            stream.skipNBytes(start);
            return stream;
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        try (InputStream stream = fetchLogSegment(segment, start)) {
            return new java.io.ByteArrayInputStream(stream.readNBytes(end - start + 1));
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType kind) throws RemoteStorageException {
        try {
            return opened(segment, kind.name());
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    private InputStream opened(RemoteLogSegmentMetadata segment, String kind) throws IOException, RemoteStorageException {
        Path path = path(segment, kind);
        if (!Files.exists(path)) {
            throw new RemoteResourceNotFoundException(path + " does not exist");
        }
        return Files.newInputStream(path);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        try {
            for (String kind : new String[] {"LOG", "OFFSET", "TIMESTAMP", "PRODUCER_SNAPSHOT", "TRANSACTION", "LEADER_EPOCH"}) {
                Files.deleteIfExists(path(segment, kind));
            }
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void close() {}
}
