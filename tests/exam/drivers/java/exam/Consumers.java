package exam;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The consumers by their names. */
final class Consumers {
    private final Map<String, Consumer<byte[], byte[]>> consumers = new HashMap<>();

    void create(Command command) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", command.string("bootstrap_servers"));
        properties.put("client.id", command.string("client_id"));
        if (command.has("group")) properties.put("group.id", command.string("group"));
        if (command.has("instance_id")) properties.put("group.instance.id", command.string("instance_id"));
        properties.put("isolation.level", command.string("isolation"));
        properties.put("auto.offset.reset", command.string("offset_reset"));
        properties.put("enable.auto.commit", command.setting("auto_commit"));
        properties.put("request.timeout.ms", command.setting("request_timeout_ms"));
        properties.put("default.api.timeout.ms", "15000");
        properties.put("fetch.max.wait.ms", "100");
        properties.put("max.poll.records", "1"); // the number of records is an argument of the command, not of the library
        properties.put("retry.backoff.ms", "50");
        properties.put("reconnect.backoff.max.ms", "500");
        if (command.string("protocol").equals("consumer")) {
            properties.put("group.protocol", "consumer");
        } else {
            properties.put("session.timeout.ms", command.setting("session_timeout_ms"));
            properties.put("heartbeat.interval.ms", command.setting("heartbeat_interval_ms"));
        }
        Security.into(properties, command);
        consumers.put(
            command.string("name"), new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
    }

    boolean has(String name) {
        return consumers.containsKey(name);
    }

    Consumer<byte[], byte[]> of(Command command) {
        Consumer<byte[], byte[]> found = consumers.get(command.string("consumer"));
        if (found == null) throw new IllegalArgumentException("there is no consumer " + command.string("consumer"));
        return found;
    }

    private static TopicPartition place(Map<String, Object> fields) {
        return new TopicPartition((String) fields.get("topic"), ((Long) fields.get("partition")).intValue());
    }

    void assign(Command command) {
        List<TopicPartition> places = new ArrayList<>();
        for (Map<String, Object> each : command.objects("partitions")) places.add(place(each));
        of(command).assign(places);
        for (Map<String, Object> each : command.objects("partitions"))
            of(command).seek(place(each), (Long) each.get("offset"));
    }

    void subscribe(Command command) {
        of(command).subscribe((Collection<String>) command.strings("topics"));
    }

    Map<String, Object> poll(Command command) {
        List<Object> records = new ArrayList<>();
        Map<String, Object> out = new HashMap<>();
        out.put("records", records);
        out.put("errors", Collections.emptyList());
        long most = command.has("max_records") ? command.number("max_records") : Long.MAX_VALUE;
        Duration wait = command.timeout();
        Consumer<byte[], byte[]> consumer = of(command);
        try {
            for (int before = -1; before < records.size() && records.size() < most; wait = Duration.ZERO) {
                before = records.size();
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(wait)) records.add(record(each));
            }
        } catch (RuntimeException refused) { // an error code that it does not expect is no KafkaException
            out.put("errors", Collections.singletonList(Errors.of(refused)));
        }
        return out;
    }

    private static Map<String, Object> record(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("topic", record.topic());
        out.put("partition", record.partition());
        out.put("offset", record.offset());
        out.put("key", text(record.key()));
        out.put("value", text(record.value()));
        out.put("timestamp", record.timestamp());
        List<Object> headers = new ArrayList<>();
        for (Header each : record.headers()) headers.add(Arrays.asList(each.key(), text(each.value())));
        out.put("headers", headers);
        return out;
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    Map<String, Object> assignment(Command command) {
        List<Object> places = new ArrayList<>();
        for (TopicPartition each : of(command).assignment()) {
            Map<String, Object> place = new LinkedHashMap<>();
            place.put("topic", each.topic());
            place.put("partition", each.partition());
            places.add(place);
        }
        return Collections.singletonMap("partitions", places);
    }

    void seek(Command command) {
        TopicPartition place = new TopicPartition(command.string("topic"), (int) command.number("partition"));
        of(command).seek(place, command.number("offset"));
    }

    void commit(Command command) {
        if (!command.has("offsets")) {
            of(command).commitSync(command.timeout());
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (Map<String, Object> each : command.objects("offsets")) offsets.put(place(each), new OffsetAndMetadata((Long) each.get("offset")));
        of(command).commitSync(offsets, command.timeout());
    }

    Object close(Command command) {
        consumers.remove(command.string("name")).close(command.timeout());
        return Collections.emptyMap();
    }
}
