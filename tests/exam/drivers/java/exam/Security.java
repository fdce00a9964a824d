package exam;

import java.util.Properties;

/** The settings of TLS and SASL. */
final class Security {
    private static final String MODULES = "org.apache.kafka.common.security.";

    private Security() { }

    static void into(Properties properties, Command command) {
        if (command.has("tls_ca")) {
            properties.put("security.protocol", "SSL");
            properties.put("ssl.truststore.type", "PEM");
            properties.put("ssl.truststore.location", command.string("tls_ca"));
        }
        if (command.has("sasl_mechanism")) sasl(properties, command);
    }

    private static void sasl(Properties properties, Command command) {
        String mechanism = command.string("sasl_mechanism");
        properties.put("security.protocol", "SASL_PLAINTEXT");
        properties.put("sasl.mechanism", mechanism);
        if (mechanism.equals("OAUTHBEARER")) {
            properties.put("sasl.login.callback.handler.class", GivenToken.class.getName());
            properties.put("sasl.jaas.config", String.format(
                "%soauthbearer.OAuthBearerLoginModule required token=\"%s\";", MODULES, command.string("sasl_token")));
            return;
        }
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        properties.put("sasl.jaas.config", String.format(
            "%s%s required username=\"%s\" password=\"%s\";",
            MODULES, module, command.string("sasl_username"), command.string("sasl_password")));
    }
}
