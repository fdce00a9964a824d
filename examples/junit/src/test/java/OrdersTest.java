import static org.junit.jupiter.api.Assertions.assertEquals;

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
import org.junit.jupiter.api.Test;
import understudy.junit.Cluster;
import understudy.junit.KafkaTest;

/** JUnit 5: a cluster as just started for each test. */
@KafkaTest(brokers = 3, topics = "orders:1")
class OrdersTest {
    private final Cluster kafka;

    OrdersTest(Cluster kafka) { this.kafka = kafka; }

    @Test
    void whatIsSentIsRead() throws Exception {
        send("one order");
        assertEquals(List.of("one order"), read());
    }

    @Test
    void anAnswerThatIsLostMakesNoSecondOrder() throws Exception {
        kafka.addFault(Map.of("api", "Produce", "topic", "orders"), Map.of("apply_then", Map.of("disconnect", "reset")));
        send("one order");    // the producer is idempotent: it sends again, and the broker knows it
        assertEquals(List.of("one order"), read());
    }

    private void send(String order) throws Exception {
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", kafka.bootstrapServers()),
                new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", order)).get();
        }
    }

    private List<String> read() {
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
