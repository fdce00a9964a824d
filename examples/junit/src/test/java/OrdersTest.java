import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** JUnit 5 through the command: one cluster for the class, as just started for each test. */
class OrdersTest {
    private static Understudy kafka;

    @BeforeAll
    static void start() throws Exception { kafka = new Understudy("--brokers", "3", "--topic", "orders:1"); }

    @AfterAll
    static void stop() { kafka.close(); }

    @BeforeEach
    void reset() throws Exception { kafka.ask("POST", "/v1/reset", ""); }

    @Test
    void whatIsSentIsRead() throws Exception {
        send("one order");
        assertEquals(List.of("one order"), read());
    }

    @Test
    void anAnswerThatIsLostMakesNoSecondOrder() throws Exception {
        kafka.ask("POST", "/v1/faults", """
            {"match": {"api": "Produce", "topic": "orders"}, "do": {"apply_then": {"disconnect": "reset"}}}""");
        send("one order");    // the producer is idempotent: it sends again, and the broker knows it
        assertTrue(kafka.ask("GET", "/v1/faults?unmet=true", "").contains("\"faults\":[]"), "no request met the fault");
        assertEquals(List.of("one order"), read());
    }

    private static void send(String order) throws Exception {
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", kafka.bootstrapServers()),
                new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", order)).get();
        }
    }

    private static List<String> read() {
        try (var consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", kafka.bootstrapServers()),
                new StringDeserializer(), new StringDeserializer())) {
            var partition = new TopicPartition("orders", 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            var orders = new ArrayList<String>();
            while (consumer.position(partition) < consumer.endOffsets(List.of(partition)).get(partition))
                consumer.poll(Duration.ofSeconds(1)).forEach(record -> orders.add(record.value()));
            return orders;
        }
    }
}
