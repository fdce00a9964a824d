import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;

/** JUnit 5 with Testcontainers and the image that {@code docker build -t understudy .} makes. */
@Testcontainers(disabledWithoutDocker = true)
class OrdersInContainerTest {
    /** Clients must reach the broker at the address that it advertises, so its port is chosen before it starts. */
    private static final int PORT = freePort();

    @Container
    private static final GenericContainer<?> KAFKA = new GenericContainer<>("understudy")
        .withEnv("UNDERSTUDY_ADVERTISE", "localhost:" + PORT)
        .withEnv("UNDERSTUDY_TOPIC", "orders:1")
        .withEnv("UNDERSTUDY_CONTROL_HOST", "0.0.0.0")
        .withEnv("UNDERSTUDY_CONTROL_TOKEN", "secret")
        .withExposedPorts(9099)
        .waitingFor(Wait.forHttp("/v1/health").forPort(9099));

    static {
        KAFKA.setPortBindings(List.of(PORT + ":9092"));
    }

    @Test
    void anOrderGetsAnOffset() throws Exception {
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", "localhost:" + PORT),
                new StringSerializer(), new StringSerializer())) {
            assertEquals(0, producer.send(new ProducerRecord<>("orders", "one order")).get().offset());
        }
        assertEquals(200, reset());
    }

    private static int reset() throws Exception {
        var control = "http://localhost:" + KAFKA.getMappedPort(9099);
        var request = HttpRequest.newBuilder(URI.create(control + "/v1/reset")).header("Authorization", "Bearer secret")
            .POST(HttpRequest.BodyPublishers.noBody()).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).statusCode();
    }

    private static int freePort() {
        try (var socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
