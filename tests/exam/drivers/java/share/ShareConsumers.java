package exam;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The members of share groups by their names; compiled for releases that have them. */
public final class ShareConsumers implements Sharing {
    private final Map<String, KafkaShareConsumer<byte[], byte[]>> consumers = new HashMap<>();
    private final Map<String, ConsumerRecord<byte[], byte[]>> polled = new HashMap<>();

    @Override
    public Object run(Command command) {
        String name = command.has("consumer") ? command.string("consumer") : command.string("name");
        if (command.name.equals("share_consumer")) return create(name, command);
        KafkaShareConsumer<byte[], byte[]> consumer = consumers.get(name);
        if (consumer == null) return null;
        switch (command.name) {
            case "subscribe": consumer.subscribe(command.strings("topics")); break;
            case "poll": return poll(consumer, command);
            case "acknowledge": acknowledge(consumer, command); break;
            case "commit_acknowledgements": commit(consumer, command); break;
            case "close": consumers.remove(name).close(command.timeout()); break;
            default: return null;
        }
        return Collections.emptyMap();
    }

    private Object create(String name, Command command) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", command.string("bootstrap_servers"));
        properties.put("client.id", command.string("client_id"));
        properties.put("group.id", command.string("group"));
        properties.put("request.timeout.ms", command.setting("request_timeout_ms"));
        properties.put("share.acknowledgement.mode", "explicit");
        properties.put("fetch.max.wait.ms", "100");
        properties.put("retry.backoff.ms", "50");
        properties.put("reconnect.backoff.max.ms", "500");
        consumers.put(name, new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
        return Collections.emptyMap();
    }

    private Object poll(KafkaShareConsumer<byte[], byte[]> consumer, Command command) {
        List<Object> records = new ArrayList<>();
        Map<String, Object> out = new HashMap<>();
        out.put("records", records);
        out.put("errors", Collections.emptyList());
        try {
            for (ConsumerRecord<byte[], byte[]> each : consumer.poll(command.timeout())) {
                polled.put(place(consumer, each.topic(), each.partition(), each.offset()), each);
                Map<String, Object> record = new LinkedHashMap<>();
                record.put("topic", each.topic());
                record.put("partition", each.partition());
                record.put("offset", each.offset());
                record.put("key", each.key() == null ? null : new String(each.key(), StandardCharsets.UTF_8));
                record.put("value", new String(each.value(), StandardCharsets.UTF_8));
                records.add(record);
            }
        } catch (KafkaException refused) {
            out.put("errors", Collections.singletonList(Errors.of(refused)));
        }
        return out;
    }

    private static String place(Object consumer, Object topic, Object partition, Object offset) {
        return System.identityHashCode(consumer) + " " + topic + " " + partition + " " + offset;
    }

    private void acknowledge(KafkaShareConsumer<byte[], byte[]> consumer, Command command) {
        AcknowledgeType type = AcknowledgeType.valueOf(command.string("type").toUpperCase());
        for (Map<String, Object> each : command.objects("records"))
            consumer.acknowledge(polled.remove(place(consumer, each.get("topic"), each.get("partition"), each.get("offset"))), type);
    }

    private static void commit(KafkaShareConsumer<byte[], byte[]> consumer, Command command) {
        Map<TopicIdPartition, Optional<KafkaException>> answer = consumer.commitSync(command.timeout());
        for (Optional<KafkaException> each : answer.values()) if (each.isPresent()) throw each.get();
    }
}
