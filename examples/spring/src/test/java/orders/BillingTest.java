package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.kafka.core.KafkaTemplate;
import understudy.junit.Cluster;
import understudy.junit.KafkaTest;

/**
 * Spring keeps its context, and the address in it, for all tests, so the port is fixed. The topics belong to the cluster:
 * those of NewTopic beans are created once, and the reset before the second test removes them.
 */
@KafkaTest(topics = {"orders:1", "invoices:1"}, options = {"--port", "19092"})
@SpringBootTest(properties = {
    "spring.kafka.bootstrap-servers=127.0.0.1:19092",
    "spring.kafka.consumer.auto-offset-reset=earliest" // a listener may join after the test has sent an order
})
class BillingTest {
    @Autowired
    private KafkaTemplate<String, String> template;

    @Test
    void anOrderHasAnInvoice(Cluster kafka) throws Exception {
        template.send("orders", "one order").get();
        assertEquals("invoice for one order", firstInvoice(kafka));
    }

    @Test
    void anInvoiceThatIsRefusedIsSentAgain(Cluster kafka) throws Exception {
        var refused = kafka.addFault(Map.of("api", "Produce", "topic", "invoices"), Map.of("error", "NOT_LEADER_OR_FOLLOWER"));
        template.send("orders", "another order").get();
        kafka.waitHits(refused, 1, Duration.ofSeconds(20));
        assertEquals("invoice for another order", firstInvoice(kafka));
    }

    private static String firstInvoice(Cluster kafka) throws InterruptedException {
        for (long end = System.nanoTime() + Duration.ofSeconds(20).toNanos(); System.nanoTime() < end; Thread.sleep(50)) {
            List<String> invoices = kafka.values("invoices", 0);
            if (!invoices.isEmpty()) return invoices.get(0);
        }
        throw new AssertionError("there is no invoice");
    }
}
