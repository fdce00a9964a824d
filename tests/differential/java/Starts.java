import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints for each line of input, the settings of a broker as JSON, "ok" or why a broker does not start with them. */
public class Starts {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Properties settings = new Properties();
            settings.putAll(json.readValue(line, Map.class));
            System.out.println(json.writeValueAsString(answer(settings)));
        }
    }

    private static String answer(Properties settings) {
        try {
            KafkaConfig config = KafkaConfig.fromProps(settings, false);
            Map<String, Object> ofTopics = config.extractLogConfigMap();
            LogConfig.validateBrokerLogConfigValues(
                ofTopics, config.remoteLogManagerConfig().isRemoteStorageSystemEnabled());
            new LogConfig(ofTopics);
            return "ok";
        } catch (Exception refused) {
            return String.valueOf(refused.getMessage());
        }
    }
}
