import java.lang.reflect.Field;
import java.util.Map;
import java.util.TreeSet;

/**
 * The settings that a broker's jars on the class path define: a line for each, of tab-separated fields: `broker` or `topic`, name, type,
 * default, what the validator prints, whether DescribeConfigs leaves it out, whether and where it may change at run time.
 */
public class ReleaseSettings {
    private static final String NULL = "\\N";
    private static final String DEFINITION = "org.apache.kafka.common.config.ConfigDef";

    public static void main(String[] arguments) throws Exception {
        String dynamic = "", perBroker = "";
        for (String name : new String[] {"kafka.server.DynamicBrokerConfig$", "org.apache.kafka.server.config.DynamicBrokerConfig"}) {
            Object dynamics = first(name);
            if (dynamics != null) {  // since 1.1; in 4.3 the sets moved from Scala to Java
                dynamic += elements(dynamics, "AllDynamicConfigs", "ALL_DYNAMIC_CONFIGS");
                perBroker += elements(dynamics, "PerBrokerConfigs", "PER_BROKER_CONFIGS");
            }
        }
        print("broker", first("kafka.server.KafkaConfig$"), dynamic, perBroker);
        print("topic", first("org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig$"), "", "");
        Object groups = first("org.apache.kafka.coordinator.group.GroupConfig");
        if (groups != null) {
            print("group", groups, "", "");
        }
    }

    /** The first of some classes that is there: a Scala object, or the class itself for its static fields. */
    private static Object first(String... names) throws Exception {
        for (String name : names) {
            try {
                Class<?> found = Class.forName(name);
                return name.endsWith("$") ? found.getField("MODULE$").get(null) : found;
            } catch (ClassNotFoundException e) {
                // of another release
            }
        }
        return null;
    }

    private static Field[] fields(Object owner) {
        return (owner instanceof Class<?> ? (Class<?>) owner : owner.getClass()).getDeclaredFields();
    }

    /** A set of names, whether Scala's or Java's, as `,name,name,`. */
    private static String elements(Object owner, String... names) throws Exception {
        for (Field field : fields(owner)) {
            for (String name : names) {
                if (field.getName().equals(name) || field.getName().endsWith("$$" + name)) {
                    field.setAccessible(true);
                    Object set = field.get(owner instanceof Class<?> ? null : owner);
                    TreeSet<String> found = new TreeSet<>();
                    if (set instanceof Iterable<?>) {
                        for (Object each : (Iterable<?>) set) {
                            found.add(each.toString());
                        }
                        return "," + String.join(",", found) + ",";
                    }
                    return "," + set.getClass().getMethod("mkString", String.class).invoke(set, ",") + ",";
                }
            }
        }
        return "";
    }

    private static void print(String kind, Object owner, String dynamic, String perBroker) throws Exception {
        Class<?> type = Class.forName(DEFINITION);
        for (Field field : fields(owner)) {
            if (type.isAssignableFrom(field.getType()) && !field.getName().startsWith("SERVER")) {  // not the log's part of the broker's
                field.setAccessible(true);
                Object definition = field.get(owner instanceof Class<?> ? null : owner);
                Map<?, ?> keys = (Map<?, ?>) type.getMethod("configKeys").invoke(definition);
                for (Object key : keys.values()) {
                    line(kind, key, dynamic, perBroker);
                }
                return;
            }
        }
        throw new NoSuchFieldException(DEFINITION + " in " + owner);
    }

    private static void line(String kind, Object key, String dynamic, String perBroker) throws Exception {
        String name = of(key, "name").toString();
        String mode = perBroker.contains("," + name + ",") ? "broker" : dynamic.contains("," + name + ",") ? "cluster" : "fixed";
        System.out.println(String.join("\t", kind, name, of(key, "type").toString(), text(of(key, "type"), of(key, "defaultValue")),
            text(null, of(key, "validator")), "" + Boolean.TRUE.equals(of(key, "internalConfig")), mode));
    }

    private static Object of(Object key, String field) throws Exception {
        try {
            return key.getClass().getField(field).get(key);
        } catch (NoSuchFieldException e) {
            return null;
        }
    }

    /** A default as ConfigDef writes it; NULL for null, and for a setting that has none. */
    private static String text(Object type, Object value) throws Exception {
        if (value == null || (type != null && value.getClass() == Object.class)) {
            return NULL;
        }
        if (type == null) {
            String printed = value.toString().replaceAll("\\s+", " ");
            return printed.matches(".*[\\w$]@[0-9a-f]+$") ? value.getClass().getName() : printed;
        }
        Class<?> types = Class.forName(DEFINITION + "$Type");
        Object written = Class.forName(DEFINITION).getMethod("convertToString", Object.class, types).invoke(null, value, type);
        return written == null ? NULL : written.toString();
    }
}
