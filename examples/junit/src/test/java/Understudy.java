import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A cluster in a process of its own, on free ports: the command {@code understudy}, and its control plane over HTTP.
 * With {@code --lifeline} the process ends when its standard input closes, so it never outlives this JVM.
 */
final class Understudy implements AutoCloseable {
    private static final int START_SECONDS = 30, STOP_SECONDS = 5;
    private final Process process;
    private String bootstrapServers;
    private String control;

    /** Starts it with further options of {@code understudy serve}; it is ready when this returns. */
    Understudy(String... options) throws IOException {
        var command = new ProcessBuilder("understudy", "serve", "--lifeline", "--port", "0", "--control-port", "0");
        for (String option : options) command.command().add(option);
        process = command.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            CompletableFuture.runAsync(this::readAddresses).get(START_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException error) {
            close();
            throw new IOException("understudy was not ready within " + START_SECONDS + " s", error);
        }
    }

    private void readAddresses() {
        var output = new BufferedReader(new InputStreamReader(process.getInputStream()));
        while (control == null) {
            try {
                String line = output.readLine();
                if (line == null) throw new IllegalStateException("understudy ended before it was ready");
                if (line.startsWith("bootstrap.servers=")) bootstrapServers = line.substring("bootstrap.servers=".length());
                if (line.startsWith("control=")) control = line.substring("control=".length());
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    long pid() { return process.pid(); }

    String bootstrapServers() { return bootstrapServers; }

    /** A verb of the control plane, such as {@code ask("POST", "/v1/clock/advance", "{\"ms\": 900000}")}; its answer. */
    String ask(String method, String path, String body) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(control + path))
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) throw new IOException(answer.body());
        return answer.body();
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) return;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        process.destroyForcibly();
    }
}
