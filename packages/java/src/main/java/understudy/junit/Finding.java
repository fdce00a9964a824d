package understudy.junit;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Finds the server, in this order: the system property {@code understudy.command}, the environment variable
 * {@code UNDERSTUDY_COMMAND}, the PATH, the folder of the self-contained binary, a container.
 *
 * @param command the program and its arguments, without the options of the test
 * @param brokers the addresses, if known before the start: for a container
 * @param searched what was looked for before a container, for the error if that does not start
 */
record Finding(List<String> command, List<String> brokers, String control, String token, String searched) {
    private static final List<String> SERVE = List.of("serve", "--lifeline");
    private static final List<String> SHARED = List.of("shared", "--lifeline");
    private static final List<String> FREE_PORTS = List.of("--port", "0", "--control-port", "0");
    static final String VERSION = version(), TOKEN = "UNDERSTUDY_CONTROL_TOKEN", SETTINGS = "UNDERSTUDY_SET";

    static Finding find(List<String> options, Map<String, String> environment) {
        String explicit = System.getProperty("understudy.command"), name = "the property understudy.command";
        if (explicit == null || explicit.isBlank()) {
            explicit = environment.getOrDefault("UNDERSTUDY_COMMAND", "");
            name = "UNDERSTUDY_COMMAND";
        }
        if (!explicit.isBlank()) {
            var words = new File(explicit).exists() ? List.of(explicit) : List.of(explicit.trim().split("\\s+"));
            var program = words.get(0).contains(File.separator)
                ? Optional.of(words.get(0)).filter(Finding::isProgram) : onPath(words.get(0), environment);
            String problem = name + " is \"" + explicit + "\", but there is no such program";
            var found = program.orElseThrow(() -> new KafkaControlException(0, problem, null));
            return local(found, words.subList(1, words.size()), environment);
        }
        var binary = serverFolder(environment).resolve("understudy").toString();
        var installed = onPath("understudy", environment).or(() -> Optional.of(binary).filter(Finding::isProgram));
        if (installed.isPresent()) return local(installed.get(), List.of(), environment);
        var docker = onPath("docker", environment).orElseThrow(() -> new KafkaControlException(0,
            "there is no understudy server; " + searched(binary, "docker on the PATH (not found)"), null));
        String given = environment.getOrDefault("UNDERSTUDY_IMAGE", ""), image = given.isBlank() ? "understudy:" + VERSION : given;
        return container(docker, image, options, searched(binary, "docker on the PATH (found), to run " + image));
    }

    /** Returns what was looked for, in which order, and two ways to get a server. */
    private static String searched(String binary, String docker) {
        return "looked, in this order, for the property understudy.command (not given), UNDERSTUDY_COMMAND (not set), understudy on "
            + "the PATH (not found), " + binary + " (not found), " + docker + ". To get a server, run in a checkout of Understudy "
            + "`make packages`, which links its server to " + binary + ", or `docker build -t understudy:" + VERSION + " .`";
    }

    /** A cluster in the server that all test processes of this user share; with UNDERSTUDY_SERVER=own, a server. */
    private static Finding local(String program, List<String> words, Map<String, String> environment) {
        var command = new ArrayList<>(List.of(program));
        command.addAll(words);
        command.addAll("own".equals(environment.get("UNDERSTUDY_SERVER")) ? SERVE : SHARED);
        command.addAll(FREE_PORTS);
        return new Finding(command, null, null, null, null);
    }

    /** Clients connect to the advertised ports, so they are chosen here and are the same inside and outside. */
    private static Finding container(String docker, String image, List<String> options, String searched) {
        int brokers = brokerCount(options), port = freePorts(brokers + 1);
        var bytes = new byte[16];
        new SecureRandom().nextBytes(bytes);
        String token = HexFormat.of().formatHex(bytes);
        // Pass only the names of the token and settings: each user of this machine can read a command line.
        var command = new ArrayList<>(List.of(docker, "run", "--rm", "-i", "-e", TOKEN, "-e", SETTINGS));
        var addresses = new ArrayList<String>();
        for (int at = port; at <= port + brokers; at++) {
            command.addAll(List.of("-p", "127.0.0.1:" + at + ":" + at));
            if (at < port + brokers) addresses.add("127.0.0.1:" + at);
        }
        command.add(image);
        command.addAll(SERVE);
        command.addAll(List.of("--host", "0.0.0.0", "--port", String.valueOf(port), "--advertise", addresses.get(0),
            "--control-host", "0.0.0.0", "--control-port", String.valueOf(port + brokers)));
        return new Finding(command, addresses, "http://127.0.0.1:" + (port + brokers), token, searched);
    }

    private static int brokerCount(List<String> options) {
        String value = "1", option = "--brokers";
        for (int at = 0; at < options.size(); at++) {
            if (options.get(at).startsWith(option + "=")) value = options.get(at).substring(option.length() + 1);
            else if (options.get(at).equals(option) && at + 1 < options.size()) value = options.get(at + 1);
        }
        if (value.contains(",")) return value.split(",").length;
        if (value.matches("[1-9][0-9]{0,4}")) return Integer.parseInt(value);
        throw new KafkaControlException(0, "--brokers " + value + " is not a number of brokers", null);
    }

    /** Returns the first of that many consecutive free ports. */
    static int freePorts(int count) {
        while (true) {
            var held = new ArrayList<ServerSocket>();
            try {
                int first = hold(0, held);
                for (int next = first + 1; next < first + count; next++) hold(next, held);
                return first;
            } catch (IOException | IllegalArgumentException taken) { // or beyond the last port: another row
                continue;
            } finally {
                for (var each : held) close(each);
            }
        }
    }

    private static int hold(int port, List<ServerSocket> held) throws IOException {
        var socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress());
        held.add(socket);
        return socket.getLocalPort();
    }

    private static void close(ServerSocket socket) {
        try {
            socket.close();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static boolean isProgram(String path) { return Files.isRegularFile(Path.of(path)) && Files.isExecutable(Path.of(path)); }

    private static Optional<String> onPath(String name, Map<String, String> environment) {
        for (String folder : environment.getOrDefault("PATH", "").split(File.pathSeparator)) {
            String path = folder + File.separator + name;
            if (!folder.isEmpty() && isProgram(path)) return Optional.of(path);
        }
        return Optional.empty();
    }

    private static Path serverFolder(Map<String, String> environment) {
        String cache = environment.getOrDefault("XDG_CACHE_HOME", "");
        var folder = cache.isEmpty() ? Path.of(System.getProperty("user.home"), ".cache") : Path.of(cache);
        return folder.resolve("understudy").resolve(VERSION);
    }

    private static String version() {
        try (var text = Finding.class.getResourceAsStream("version")) {
            return new String(text.readAllBytes(), StandardCharsets.UTF_8).trim();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
