package exam;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much JSON as the driver contract needs: kafka-clients brings no parser. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(String text) {
        return (Map<String, Object>) new Json(text).value();
    }

    // ---------------------------------------------------------------- reading

    private char next() {
        while (Character.isWhitespace(text.charAt(at))) at++;
        return text.charAt(at);
    }

    private Object value() {
        switch (next()) {
            case '{': return map();
            case '[': return list();
            case '"': return string();
            case 't': at += 4; return true;
            case 'f': at += 5; return false;
            case 'n': at += 4; return null;
            default: return number();
        }
    }

    private Map<String, Object> map() {
        Map<String, Object> out = new LinkedHashMap<>();
        at++;
        while (next() != '}') {
            String key = string();
            next();
            at++;
            out.put(key, value());
            if (next() == ',') at++;
        }
        at++;
        return out;
    }

    private List<Object> list() {
        List<Object> out = new ArrayList<>();
        at++;
        while (next() != ']') {
            out.add(value());
            if (next() == ',') at++;
        }
        at++;
        return out;
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        next();
        at++;
        for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
            if (c == '\\') {
                c = text.charAt(at++);
                if (c == 'u') {
                    c = (char) Integer.parseInt(text.substring(at, at + 4), 16);
                    at += 4;
                } else if ("bfnrt".indexOf(c) >= 0) {
                    c = "\b\f\n\r\t".charAt("bfnrt".indexOf(c));
                }
            }
            out.append(c);
        }
        return out.toString();
    }

    private Long number() {
        int from = at;
        while (at < text.length() && "+-0123456789".indexOf(text.charAt(at)) >= 0) at++;
        return Long.valueOf(text.substring(from, at));
    }

    // ---------------------------------------------------------------- writing

    static String text(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map) {
            String between = "{";
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                out.append(between);
                write(each.getKey(), out);
                out.append(':');
                write(each.getValue(), out);
                between = ",";
            }
            out.append(((Map<?, ?>) value).isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String between = "";
            out.append('[');
            for (Object each : (Iterable<?>) value) {
                out.append(between);
                write(each, out);
                between = ",";
            }
            out.append(']');
        } else if (value instanceof String) {
            out.append('"');
            for (char c : ((String) value).toCharArray()) {
                if (c == '"' || c == '\\') out.append('\\').append(c);
                else if (c < ' ' || c > '~') out.append(String.format("\\u%04x", (int) c));
                else out.append(c);
            }
            out.append('"');
        } else {
            out.append(value);
        }
    }
}
