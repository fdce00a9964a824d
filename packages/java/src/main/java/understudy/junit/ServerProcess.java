package understudy.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

/** The server's process. With {@code --lifeline} it ends when its standard input closes, so it never outlives this JVM. */
final class ServerProcess {
    private static final int STOP_SECONDS = 5, LOG_LINES = 30, SIGNALLED = 128;
    private static final Pattern LINE_END = Pattern.compile("[\\n\\r\\x0b\\f\\x1c-\\x1e\\x85\\u2028\\u2029]");
    private final Process process;
    private final Deque<String> log = new ArrayDeque<>();
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private List<String> brokers;
    private String control;
    private String cluster;
    private final Finding found;
    private volatile boolean isStopped;

    ServerProcess(List<String> options, long limitMs) {
        found = Finding.find(options, System.getenv());
        var command = new ArrayList<>(found.command());
        var settings = new ArrayList<String>();
        command.addAll(offTheCommandLine(options, settings));
        var builder = new ProcessBuilder(command);
        // So that a test's cluster is the same on every machine.
        builder.environment().keySet().removeIf(name -> name.startsWith("UNDERSTUDY_"));
        if (!settings.isEmpty()) builder.environment().put(Finding.SETTINGS, String.join("\n", settings));
        if (found.token() != null) builder.environment().put(Finding.TOKEN, found.token());
        try {
            process = builder.start();
        } catch (IOException error) {
            throw new KafkaControlException(0, "understudy cannot be started: " + error.getMessage(), error);
        }
        var logged = read(process.getErrorStream(), this::keep);
        read(process.getInputStream(), this::readAddress).thenRunAsync(() -> ready.completeExceptionally(
            new IllegalStateException("it ended with code " + process.onExit().join().exitValue())));
        try {
            ready.get(limitMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException error) {
            throw notReady("it took longer than " + limitMs + " ms");
        } catch (ExecutionException error) {
            logged.join();
            throw notReady(error.getCause().getMessage());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw notReady("its start was interrupted");
        }
    }

    /**
     * Moves the values of {@code --set} to a list for the environment, and returns the remaining arguments: each user of this
     * machine can read a command line, so it must have no secrets. A value with a line end, or a blank at an end, stays.
     */
    static List<String> offTheCommandLine(List<String> options, List<String> settings) {
        var left = new ArrayList<String>();
        for (int at = 0, count; at < options.size(); at += count) {
            String word = options.get(at), prefix = "--set";
            count = word.equals(prefix) && at + 1 < options.size() ? 2 : 1;
            String value = count == 2 ? options.get(at + 1) : word.startsWith(prefix + "=") ? word.substring(prefix.length() + 1) : "";
            boolean fits = value.contains("=") && value.equals(value.strip()) && !LINE_END.matcher(value).find();
            if (fits) settings.add(value);
            else left.addAll(options.subList(at, at + count));
        }
        return left;
    }

    private KafkaControlException notReady(String why) {
        stop();
        String searched = found.searched() == null ? "" : "\n" + found.searched();
        return new KafkaControlException(0, "understudy is not ready: " + why + "\n" + log() + searched, null);
    }

    /** Reads lines on a thread that does not keep the JVM alive. */
    private static CompletableFuture<Void> read(InputStream stream, java.util.function.Consumer<String> take) {
        var done = new CompletableFuture<Void>();
        var thread = new Thread(() -> {
            try (var lines = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) take.accept(line);
            } catch (IOException closed) { // the process has ended
                Thread.yield();
            }
            done.complete(null);
        }, "understudy");
        thread.setDaemon(true);
        thread.start();
        return done;
    }

    private void readAddress(String line) {
        String servers = "bootstrap.servers=", body = "cluster=", plane = "control=";
        if (line.startsWith(servers)) brokers = List.of(line.substring(servers.length()).split(","));
        if (line.startsWith(body)) cluster = line.substring(body.length());
        if (!line.startsWith(plane)) return;
        control = found.control() != null ? found.control() : line.substring(plane.length());
        if (found.brokers() != null) brokers = found.brokers();
        ready.complete(null);
    }

    private void keep(String line) {
        synchronized (log) {
            log.add(line);
            if (log.size() > LOG_LINES) log.remove();
        }
    }

    List<String> brokers() { return brokers; }

    String control() { return control; }

    /** The JSON body of the request that has made the cluster in the shared server; null if it has a server of its own. */
    String cluster() { return cluster; }

    String token() { return found.token(); }

    long pid() { return process.pid(); }

    /**
     * Returns how the server ended, such as "the server (process 7) was killed by signal 9"; empty if it runs still after this
     * time, or was stopped here.
     */
    Optional<String> ending(long limitMs) {
        try {
            if (isStopped || !process.waitFor(limitMs, TimeUnit.MILLISECONDS)) return Optional.empty();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        }
        int code = process.exitValue(); // Java reports a signal as 128 and its number
        String how = code > SIGNALLED ? "was killed by signal " + (code - SIGNALLED) : "ended with code " + code;
        return Optional.of("the server (process " + pid() + ") " + how);
    }

    boolean isAlive() { return process.isAlive(); }

    /** The last lines that the server wrote to stderr. */
    String log() {
        synchronized (log) {
            return String.join("\n", log);
        }
    }

    /**
     * Sends SIGTERM, and SIGKILL if it does not end. {@code Process.destroy} would also close standard input, which the server
     * treats as a second signal, and a second signal ends it without an orderly stop.
     */
    void stop() {
        isStopped = true;
        process.toHandle().destroy();
        try {
            process.waitFor(STOP_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        process.destroyForcibly();
    }
}
