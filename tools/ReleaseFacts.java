import java.lang.reflect.Method;

/** What a kafka-clients jar on the class path says of its release's protocol: a line per API, then the last error code. */
public class ReleaseFacts {
    private static Object call(Object on, String name, Object... arguments) throws Exception {
        for (Method method : on.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                return method.invoke(on, arguments);
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static Object latest(Object key) throws Exception {
        try {
            return call(key, "latestVersion", false);  // without unstable versions, which came with 3.5
        } catch (NoSuchMethodException e) {
            return call(key, "latestVersion");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        for (Object key : keys.getEnumConstants()) {
            String listeners;
            try {
                listeners = call(keys.getField("messageType").get(key), "listeners").toString().replace(" ", "");
            } catch (ReflectiveOperationException e) {
                listeners = "[ZK_BROKER]";  // before 2.8 there was no other
            }
            System.out.println(String.join(" ", "api", "" + keys.getField("id").get(key),
                "" + call(key, "oldestVersion"), "" + latest(key), listeners));
        }
        int last = -1;
        for (Object error : Class.forName("org.apache.kafka.common.protocol.Errors").getEnumConstants()) {
            last = Math.max(last, ((Number) call(error, "code")).intValue());
        }
        System.out.println("errors " + last);
    }
}
