package orders;

import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.stereotype.Component;

/** Reads orders, and sends invoices. */
@Component
class Billing {
    private final KafkaTemplate<String, String> template;

    Billing(KafkaTemplate<String, String> template) { this.template = template; }

    @KafkaListener(topics = "orders", groupId = "billing")
    void bill(String order) { template.send("invoices", "invoice for " + order); }
}
