import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consume, transform, produce: every order is invoiced exactly once (the template of KIP-98 and KIP-447).
 *
 * <pre>
 *     make serve                                     # in another terminal
 *     tools/fetch_kafka.sh .cache/clients clients    # kafka-clients 4.3.1, by Maven
 *     java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp '.cache/clients/*' examples/exactly_once/Transform.java
 * </pre>
 *
 * The invoices and the offsets of the orders that they were made of are one transaction: both are there, or neither.
 */
final class Transform {
    private static final int ORDERS = 10;

    public static void main(String[] args) {
        String servers = args.length > 0 ? args[0] : "127.0.0.1:9092";
        placeOrders(servers);
        try (var consumer = consumer(servers); var producer = producer(servers)) {
            producer.initTransactions();    // fences whoever had this id before, and aborts what they left open
            consumer.subscribe(List.of("orders"));
            int invoiced = 0;
            while (invoiced < ORDERS) {
                ConsumerRecords<String, String> orders = consumer.poll(Duration.ofSeconds(1));
                if (orders.isEmpty()) continue;
                if (transact(consumer, producer, orders)) {
                    invoiced += orders.count();
                    System.out.printf("committed %d invoices, %d of %d%n", orders.count(), invoiced, ORDERS);
                } else {
                    System.out.printf("aborted %d invoices, once more%n", orders.count());
                }
            }
        }
    }

    /** One transaction; whether it was committed. If not, the consumer stands where it stood before. */
    private static boolean transact(KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer,
            ConsumerRecords<String, String> orders) {
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> order : orders) {
                producer.send(new ProducerRecord<>("invoices", order.key(), "invoice for " + order.value()));
                offsets.put(new TopicPartition(order.topic(), order.partition()), new OffsetAndMetadata(order.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
            return true;
        } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException fatal) {
            throw fatal;    // another instance has taken over, and this one must end
        } catch (KafkaException abortable) {
            producer.abortTransaction();
            consumer.committed(consumer.assignment()).forEach((partition, committed) ->
                consumer.seek(partition, committed == null ? 0 : committed.offset()));
            return false;
        }
    }

    private static KafkaConsumer<String, String> consumer(String servers) {
        return new KafkaConsumer<>(Map.of(
            "bootstrap.servers", servers,
            "group.id", "invoicing",
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",            // the transaction commits the offsets
            "isolation.level", "read_committed",      // orders of an aborted transaction are none
            "max.poll.records", "4"), new StringDeserializer(), new StringDeserializer());
    }

    private static KafkaProducer<String, String> producer(String servers) {
        return new KafkaProducer<>(Map.of("bootstrap.servers", servers, "transactional.id", "invoicing-1"),
            new StringSerializer(), new StringSerializer());
    }

    private static void placeOrders(String servers) {
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", servers), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < ORDERS; number++)
                producer.send(new ProducerRecord<>("orders", "customer " + number % 3, "order " + number));
        }
    }

    private Transform() { }
}
