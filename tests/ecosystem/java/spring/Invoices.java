import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.DefaultAfterRollbackProcessor;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.util.backoff.FixedBackOff;

/**
 * Spring Kafka: a listener in a transaction of its container; each order becomes an invoice by the template.
 *
 * <p>One order fails after its invoice was sent, once: its transaction is aborted. Another one always fails, and goes to the dead letters.
 * Prints how many calls the listener had, once all orders are done.
 */
@Configuration
@EnableKafka
public class Invoices {
    static String bootstrap;
    static final int ORDERS = 200;
    static final CountDownLatch done = new CountDownLatch(ORDERS - 1);
    static final AtomicInteger calls = new AtomicInteger();
    static final Map<String, Integer> tries = new ConcurrentHashMap<>();

    @Bean
    DefaultKafkaProducerFactory<String, String> producers() {
        Map<String, Object> settings = new HashMap<>();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
        var factory = new DefaultKafkaProducerFactory<String, String>(settings);
        factory.setTransactionIdPrefix("invoices-");
        return factory;
    }

    @Bean
    KafkaTemplate<String, String> template() {
        return new KafkaTemplate<>(producers());
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory() {
        Map<String, Object> settings = new HashMap<>();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        var factory = new ConcurrentKafkaListenerContainerFactory<String, String>();
        factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(settings));
        factory.setConcurrency(3);
        factory.getContainerProperties().setKafkaAwareTransactionManager(new KafkaTransactionManager<>(producers()));
        factory.setAfterRollbackProcessor(new DefaultAfterRollbackProcessor<>(
                (record, error) -> template().send("orders.dead", (String) record.key(), (String) record.value()),
                new FixedBackOff(0, 2), template(), true));
        return factory;
    }

    @KafkaListener(topics = "orders", groupId = "spring")
    void order(ConsumerRecord<String, String> order) throws Exception {
        calls.incrementAndGet();
        int tried = tries.merge(order.value(), 1, Integer::sum);
        // Waited for, so that what is aborted is in the log: a producer drops what it has not sent.
        template().send("invoices", order.key(), "invoice " + order.value()).get();
        if (order.value().equals("13") || (order.value().equals("42") && tried == 1)) {
            throw new IllegalStateException("refused: " + order.value());
        }
        done.countDown();
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (var context = new AnnotationConfigApplicationContext(Invoices.class)) {
            if (!done.await(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException(done.getCount() + " orders are not done");
            }
        }
        System.out.println("{\"thirteen\": " + tries.get("13") + ", \"forty_two\": " + tries.get("42") + "}");
    }
}
