package understudy.junit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.UUID;
import java.util.function.Supplier;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * Understudy as a container of Testcontainers: {@code new UnderstudyContainer().withTopics("orders:1")}.
 *
 * <p>Kafka clients connect to the address that a broker advertises, so the ports on the host are chosen before the
 * container starts, and are the same inside and outside.
 */
public final class UnderstudyContainer extends GenericContainer<UnderstudyContainer> {
    private static final int START_SECONDS = 60;
    private final int brokers;
    private final int port;
    private final String token = UUID.randomUUID().toString();
    /** Of the engine, which may run on another machine, such as with Docker in Docker in GitLab CI. */
    Supplier<String> host = this::getHost;

    /** A single broker, with the image {@code understudy:VERSION}. */
    public UnderstudyContainer() { this(DockerImageName.parse("understudy:" + Finding.VERSION), 1); }

    /** That many brokers, with this image. */
    public UnderstudyContainer(DockerImageName image, int brokers) {
        super(image);
        this.brokers = brokers;
        port = Finding.freePorts(brokers + 1);
        var bindings = new ArrayList<String>();
        for (int at = port; at <= port + brokers; at++) bindings.add(at + ":" + at);
        addExposedPorts(port + brokers);
        setPortBindings(bindings);
        withEnv("UNDERSTUDY_BROKERS", String.valueOf(brokers));
        withEnv("UNDERSTUDY_HOST", "0.0.0.0");
        withEnv("UNDERSTUDY_PORT", String.valueOf(port));
        withEnv("UNDERSTUDY_CONTROL_HOST", "0.0.0.0");
        withEnv("UNDERSTUDY_CONTROL_PORT", String.valueOf(port + brokers));
        withEnv("UNDERSTUDY_CONTROL_TOKEN", token);
        withEnv("UNDERSTUDY_FOR_TESTS", "true");
        waitingFor(Wait.forHttp("/v1/health").forPort(port + brokers).withStartupTimeout(Duration.ofSeconds(START_SECONDS)));
    }

    /** Before the start, which needs the engine; the constructor does not. */
    @Override
    protected void configure() { withEnv("UNDERSTUDY_ADVERTISE", host.get() + ":" + port); }

    /** Initial topics: NAME[:PARTITIONS[:KEY=VALUE,...]]. */
    public UnderstudyContainer withTopics(String... topics) {
        return withEnv("UNDERSTUDY_TOPIC", String.join("\n", topics));
    }

    /** The {@code bootstrap.servers} for clients on this machine; the host is that of the container engine. */
    public String getBootstrapServers() {
        var addresses = new ArrayList<String>();
        for (int at = port; at < port + brokers; at++) addresses.add(host.get() + ":" + at);
        return String.join(",", addresses);
    }

    /** The running container's control plane. */
    public Cluster cluster() { return Cluster.connect("http://" + host.get() + ":" + (port + brokers), token); }
}
