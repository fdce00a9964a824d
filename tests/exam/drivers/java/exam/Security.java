package exam;

import java.util.Properties;

/** The settings of TLS and SASL. */
final class Security {
    private Security() { }

    static void into(Properties properties, Command command) {
        if (!command.has("sasl_mechanism")) return;
        properties.put("security.protocol", "SASL_PLAINTEXT");
        String mechanism = command.string("sasl_mechanism");
        properties.put("sasl.mechanism", mechanism);
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        properties.put("sasl.jaas.config", String.format(
            "org.apache.kafka.common.security.%s required username=\"%s\" password=\"%s\";",
            module, command.string("sasl_username"), command.string("sasl_password")));
    }
}
