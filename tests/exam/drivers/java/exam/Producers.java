package exam;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The producers by their names, and what has become of their records. */
final class Producers {
    private final Map<String, Producer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, Map<Long, Future<RecordMetadata>>> sent = new HashMap<>();
    private final Map<String, List<Object>> outcomes = new HashMap<>();

    void create(Command command) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", command.string("bootstrap_servers"));
        properties.put("client.id", command.string("client_id"));
        properties.put("acks", command.string("acks"));
        properties.put("enable.idempotence", command.setting("idempotent"));
        properties.put("delivery.timeout.ms", command.setting("delivery_timeout_ms"));
        properties.put("max.block.ms", command.setting("delivery_timeout_ms"));
        properties.put("request.timeout.ms", command.setting("request_timeout_ms"));
        properties.put("retry.backoff.ms", command.setting("retry_backoff_ms"));
        properties.put("reconnect.backoff.max.ms", "500");
        properties.put("linger.ms", command.setting("linger_ms"));
        properties.put("max.in.flight.requests.per.connection", command.setting("max_in_flight"));
        properties.put("compression.type", command.string("compression"));
        if (command.has("transactional_id")) {
            properties.put("transactional.id", command.string("transactional_id"));
            properties.put("transaction.timeout.ms", command.setting("transaction_timeout_ms"));
        }
        Security.into(properties, command);
        String name = command.string("name");
        producers.put(name, new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer()));
        sent.put(name, new LinkedHashMap<>());
        outcomes.put(name, new ArrayList<>());
    }

    boolean has(String name) {
        return producers.containsKey(name);
    }

    Producer<byte[], byte[]> of(Command command) {
        Producer<byte[], byte[]> found = producers.get(command.string("producer"));
        if (found == null) throw new IllegalArgumentException("there is no producer " + command.string("producer"));
        return found;
    }

    void send(Command command) {
        Producer<byte[], byte[]> producer = of(command);
        for (Map<String, Object> record : command.objects("records")) {
            Long id = (Long) record.get("id");
            byte[] key = bytes(record.get("key"));
            Integer partition = ((Long) record.get("partition")).intValue();
            try {
                sent.get(command.string("producer")).put(
                    id, producer.send(new ProducerRecord<>(command.string("topic"), partition, key, bytes(record.get("value")))));
            } catch (RuntimeException refused) {
                outcomes.get(command.string("producer")).add(outcome(id, "error", Errors.of(refused)));
            }
        }
    }

    private static byte[] bytes(Object text) {
        return text == null ? null : ((String) text).getBytes(StandardCharsets.UTF_8);
    }

    private static Map<String, Object> outcome(Long id, String field, Object value) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("id", id);
        out.put(field, value);
        return out;
    }

    Map<String, Object> flush(Command command) throws InterruptedException {
        of(command);
        long until = System.nanoTime() + command.timeout().toNanos();
        List<Object> found = outcomes.put(command.string("producer"), new ArrayList<>());
        Map<Long, Future<RecordMetadata>> waiting = sent.get(command.string("producer"));
        for (Long id : new ArrayList<>(waiting.keySet())) {
            try {
                long left = Math.max(until - System.nanoTime(), 0);
                found.add(outcome(id, "offset", waiting.get(id).get(left, TimeUnit.NANOSECONDS).offset()));
            } catch (ExecutionException refused) {
                found.add(outcome(id, "error", Errors.of(refused)));
            } catch (TimeoutException stillWaiting) {
                continue;
            }
            waiting.remove(id);
        }
        Map<String, Object> out = new HashMap<>();
        out.put("outcomes", found);
        out.put("pending", waiting.size());
        return out;
    }

    void sendOffsets(Command command, Consumer<byte[], byte[]> source) {
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (TopicPartition each : source.assignment()) positions.put(each, new OffsetAndMetadata(source.position(each)));
        of(command).sendOffsetsToTransaction(positions, source.groupMetadata());
    }

    Object close(Command command) {
        producers.remove(command.string("name")).close(command.timeout());
        return Collections.emptyMap();
    }
}
