import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** A cluster in a process of its own, on free ports: the command {@code understudy}, and its control plane over HTTP. */
final class Understudy implements AutoCloseable {
    private final Process process;
    private String bootstrapServers;
    private String control;

    /** Starts it with further options of {@code understudy serve}; it is ready when this returns. */
    Understudy(String... options) throws IOException {
        var command = new ProcessBuilder("understudy", "serve", "--port", "0", "--control-port", "0");
        for (String option : options) command.command().add(option);
        process = command.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        var said = new BufferedReader(new InputStreamReader(process.getInputStream()));
        while (control == null) {
            String line = said.readLine();
            if (line == null) throw new IOException("understudy ended instead of getting ready");
            if (line.startsWith("bootstrap.servers=")) bootstrapServers = line.substring("bootstrap.servers=".length());
            if (line.startsWith("control=")) control = line.substring("control=".length());
        }
    }

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
    public void close() { process.destroy(); }
}
