import io.smallrye.mutiny.Uni;
import io.smallrye.reactive.messaging.kafka.KafkaRecord;
import io.smallrye.reactive.messaging.kafka.transactions.KafkaTransactions;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.eclipse.microprofile.reactive.messaging.Channel;
import org.eclipse.microprofile.reactive.messaging.Incoming;
import org.eclipse.microprofile.reactive.messaging.Message;

/**
 * Quarkus with SmallRye Reactive Messaging: batches of orders become invoices in transactions that commit the orders' offsets too.
 *
 * <p>One order fails after its invoice was sent, once: the transaction is aborted, and its batch comes again.
 */
@ApplicationScoped
public class Invoices {
    @Channel("invoices")
    KafkaTransactions<String> invoices;

    private final Set<String> failed = ConcurrentHashMap.newKeySet();

    @Incoming("orders")
    Uni<Void> order(Message<ConsumerRecords<String, String>> batch) {
        return invoices.withTransactionAndAck(batch, emitter -> {
            for (var order : batch.getPayload()) {
                emitter.send(KafkaRecord.of(order.key(), "invoice " + order.value()));
                if (order.value().equals("42") && failed.add("42")) {
                    return Uni.createFrom().failure(new IllegalStateException("refused: 42"));
                }
            }
            return Uni.createFrom().voidItem();
        });
    }
}
