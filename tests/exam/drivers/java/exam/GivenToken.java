package exam;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensions;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/** Hands the token of the login module's options to the library, as an application's handler does. */
public final class GivenToken implements AuthenticateCallbackHandler {
    private String token;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        token = (String) entries.get(0).getOptions().get("token");
    }

    @Override
    public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
        for (Callback each : callbacks) {
            if (each instanceof OAuthBearerTokenCallback) ((OAuthBearerTokenCallback) each).token(new Given(token));
            else if (each instanceof SaslExtensionsCallback)
                ((SaslExtensionsCallback) each).extensions(new SaslExtensions(Collections.emptyMap()));
            else throw new UnsupportedCallbackException(each);
        }
    }

    @Override
    public void close() { }

    /** What the library asks a token for; its claims are read from the token. */
    private static final class Given implements OAuthBearerToken {
        private final String value;
        private final Map<String, Object> claims;

        Given(String value) {
            this.value = value;
            claims = Json.object(new String(Base64.getUrlDecoder().decode(value.split("\\.")[1]), StandardCharsets.UTF_8));
        }

        @Override public String value() { return value; }

        @Override public Set<String> scope() { return Collections.emptySet(); }

        @Override public long lifetimeMs() { return 1000 * (Long) claims.get("exp"); }

        @Override public String principalName() { return (String) claims.get("sub"); }

        @Override public Long startTimeMs() { return 1000 * (Long) claims.get("iat"); }
    }
}
