package groups;

import java.util.concurrent.Callable;

/** Runs one step after the other and prints a line of JSON for each, as tests/clients/steps.py says. */
final class Report {
    /** A step's work: gives a detail, or throws whatever went wrong. */
    interface Step extends Callable<Object> { }

    static final class Failure extends RuntimeException {
        Failure(String told) { super(told); }
    }

    static void expect(boolean condition, Object told) {
        if (!condition) throw new Failure(String.valueOf(told));
    }

    /** Tries until it holds; a client's own waiting sets the pace. */
    static void until(Callable<Boolean> condition, Callable<Object> told) throws Exception {
        long deadline = System.nanoTime() + 20_000_000_000L;
        while (!condition.call()) expect(System.nanoTime() < deadline, told.call());
    }

    static void step(String name, Step step) {
        long began = System.nanoTime();
        boolean ok = false;
        Object detail;
        try {
            detail = step.call();
            ok = true;
        } catch (Throwable error) {
            error.printStackTrace();
            detail = error.toString();
        }
        long ms = (System.nanoTime() - began) / 1_000_000;
        System.out.println("{\"step\": " + quoted(name) + ", \"ok\": " + ok + ", \"detail\": "
            + quoted(detail == null ? "" : detail.toString()) + ", \"ms\": " + ms + "}");
        System.out.flush();
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < ' ') out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        return out.append('"').toString();
    }

    private Report() { }
}
