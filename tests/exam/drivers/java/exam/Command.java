package exam;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** The fields of one command. */
final class Command {
    final Object id;
    final String name;
    private final Map<String, Object> fields;

    Command(Map<String, Object> fields) {
        this.fields = fields;
        this.id = fields.get("id");
        this.name = (String) fields.get("command");
    }

    boolean has(String field) {
        return fields.get(field) != null;
    }

    String string(String field) {
        return (String) fields.get(field);
    }

    /** Any scalar as a client's setting. */
    String setting(String field) {
        return String.valueOf(fields.get(field));
    }

    boolean flag(String field) {
        return Boolean.TRUE.equals(fields.get(field));
    }

    long number(String field) {
        return (Long) fields.get(field);
    }

    Duration timeout() {
        return Duration.ofMillis(number("timeout_ms"));
    }

    @SuppressWarnings("unchecked")
    List<Map<String, Object>> objects(String field) {
        return (List<Map<String, Object>>) fields.get(field);
    }

    @SuppressWarnings("unchecked")
    List<String> strings(String field) {
        return (List<String>) fields.get(field);
    }
}
