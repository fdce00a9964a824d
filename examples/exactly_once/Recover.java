import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A transaction outlives its timeout; its producer recovers and goes on (KIP-588).
 *
 * <pre>
 *     make serve                                     # in another terminal
 *     tools/fetch_kafka.sh .cache/clients clients    # kafka-clients 4.3.1, by Maven
 *     java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp '.cache/clients/*' examples/exactly_once/Recover.java
 * </pre>
 *
 * Nobody waits 15 minutes for it: the cluster's clock is pushed while the client stays connected.
 */
final class Recover {
    private static String control = "http://127.0.0.1:9099";

    public static void main(String[] args) throws Exception {
        String servers = args.length > 0 ? args[0] : "127.0.0.1:9092";
        if (args.length > 1) control = args[1];
        try (var producer = new KafkaProducer<>(Map.of(
                "bootstrap.servers", servers,
                "transactional.id", "payments-1",
                "transaction.timeout.ms", (int) Duration.ofMinutes(15).toMillis()),
                new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (int attempt = 1; attempt <= 3; attempt++) {
                try {
                    pay(producer, attempt == 1);
                    System.out.printf("attempt %d: committed%n", attempt);
                    return;
                } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException fatal) {
                    throw fatal;    // somebody else has the id now, and this producer must end
                } catch (KafkaException abortable) {
                    System.out.printf("attempt %d: %s%n", attempt, abortable.getClass().getSimpleName());
                    System.out.println("why: " + ask("GET", "/v1/transactions/payments-1/why", ""));
                    producer.abortTransaction();    // and with it the next epoch, under which this producer goes on
                }
            }
        }
        throw new IllegalStateException("given up");
    }

    /** One transaction. A slow one is still at work when the coordinator loses its patience. */
    private static void pay(KafkaProducer<String, String> producer, boolean slow) throws Exception {
        producer.beginTransaction();
        producer.send(new ProducerRecord<>("payments", "debit"));
        producer.flush();
        if (slow) ask("POST", "/v1/clock/advance", "{\"ms\": " + Duration.ofMinutes(16).toMillis() + "}");
        producer.send(new ProducerRecord<>("payments", "credit"));
        producer.commitTransaction();
    }

    private static String ask(String method, String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(control + path))
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
    }

    private Recover() { }
}
