package understudy.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.testcontainers.utility.DockerImageName;

/** Without a container engine: the variables and the ports of the container, with the server in a process. */
class UnderstudyContainerTest {
    @Test
    void theEngineMayRunElsewhere() {
        var container = new UnderstudyContainer(DockerImageName.parse("understudy"), 2);
        container.host = () -> "docker";
        container.configure();
        String first = container.getBootstrapServers().split(",")[0];
        assertTrue(first.startsWith("docker:"), first);
        assertEquals(first, container.getEnvMap().get("UNDERSTUDY_ADVERTISE"));
    }

    @Test
    void clientsReachTheAdvertisedPorts() throws Exception {
        var container = new UnderstudyContainer(DockerImageName.parse("understudy"), 2).withTopics("orders:3", "payments");
        container.host = () -> "localhost";
        container.configure();
        Map<String, String> variables = new HashMap<>(container.getEnvMap());
        assertEquals("true", variables.get("UNDERSTUDY_FOR_TESTS"), "clients do not pause in each test");
        for (String port : container.getPortBindings()) {
            assertEquals(port.split("[:/]")[0], port.split("[:/]")[1], "the same inside and outside");
        }
        assertEquals(3, container.getPortBindings().size());
        var builder = new ProcessBuilder(Finding.find(java.util.List.of(), System.getenv()).command().get(0), "serve");
        builder.environment().keySet().removeIf(name -> name.startsWith("UNDERSTUDY_"));
        builder.environment().putAll(variables);
        var process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            var lines = process.inputReader();
            for (String line = lines.readLine(); !line.startsWith("control="); line = lines.readLine()) assertTrue(process.isAlive());
            var kafka = container.cluster();
            assertEquals(container.getBootstrapServers(), kafka.bootstrapServers());
            kafka.write("payments", "one");
            kafka.reset();
            assertEquals(container.getBootstrapServers(), kafka.bootstrapServers());
            assertEquals(0, kafka.values("orders", 2).size());
        } finally {
            process.destroy();
            assertTrue(process.waitFor(10, TimeUnit.SECONDS));
        }
    }
}
