package main

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"understudy/interop/exam/kit"
)

// secure adds the settings of TLS and SASL.
func secure(settings kafka.ConfigMap, c *kit.Command) {
	if c.TLSAuthority != "" {
		settings["security.protocol"] = "SSL"
		settings["ssl.ca.location"] = c.TLSAuthority
	}
	if c.SaslMechanism == "" {
		return
	}
	settings["security.protocol"] = "SASL_PLAINTEXT"
	settings["sasl.mechanism"] = c.SaslMechanism
	if c.SaslToken == "" {
		settings["sasl.username"] = c.SaslUsername
		settings["sasl.password"] = c.SaslPassword
	}
}

// handle is a producer or a consumer.
type handle interface {
	SetOAuthBearerToken(kafka.OAuthBearerToken) error
	SetOAuthBearerTokenFailure(string) error
}

// authorize hands over the token of the command, or why the library does not take it.
func authorize(client handle, c *kit.Command) error {
	if c.SaslToken == "" {
		return nil
	}
	token := kafka.OAuthBearerToken{TokenValue: c.SaslToken, Expiration: expiry(c.SaslToken), Principal: "alice"}
	err := client.SetOAuthBearerToken(token)
	if err != nil {
		return client.SetOAuthBearerTokenFailure(err.Error())
	}
	return nil
}

// expiry is the claim `exp` of a JSON web token.
func expiry(token string) time.Time {
	var claims struct {
		Expires int64 `json:"exp"`
	}
	parts := strings.Split(token, ".")
	if body, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
		_ = json.Unmarshal(body, &claims)
	}
	return time.Unix(claims.Expires, 0)
}
