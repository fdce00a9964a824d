"""Broker settings of TLS, authorization, principals and delegation tokens (core appendix 3)."""

from broker.settings.checks import ANY_LIST, at_least, authorizer_class, one_of, principal_rules, principals
from broker.settings.model import (
    BOOLEAN,
    CLASS,
    CLUSTER,
    LIST,
    LONG,
    PASSWORD,
    PER_BROKER,
    PLUGIN,
    STRING,
    WHEN_SET,
    Row,
)

ROWS: tuple[Row, ...] = (
    Row("authorizer.class.name", STRING, "", authorizer_class),
    Row("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, at_least(1)),
    Row("delegation.token.expiry.time.ms", LONG, 86_400_000, at_least(1)),
    Row("delegation.token.max.lifetime.ms", LONG, 604_800_000, at_least(1)),
    Row("delegation.token.secret.key", PASSWORD, None),
    Row(
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        mode=PER_BROKER,
    ),
    Row(
        "security.inter.broker.protocol", STRING, "PLAINTEXT", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    ),
    Row("security.providers", STRING, None),
    # Read by StandardAuthorizer, which is a plugin for Kafka: DescribeConfigs does not know their type.
    Row("allow.everyone.if.no.acl.found", BOOLEAN, False, visibility=PLUGIN),
    Row("super.users", STRING, "", principals, visibility=PLUGIN),
    Row("ssl.allow.dn.changes", BOOLEAN, False),
    Row("ssl.allow.san.changes", BOOLEAN, False),
    Row("ssl.cipher.suites", LIST, (), ANY_LIST, PER_BROKER),
    Row("ssl.client.auth", STRING, "none", one_of("required", "requested", "none"), PER_BROKER),
    Row("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), ANY_LIST, PER_BROKER),
    Row("ssl.endpoint.identification.algorithm", STRING, "https", mode=PER_BROKER),
    Row("ssl.engine.factory.class", CLASS, None, mode=PER_BROKER),
    Row("ssl.key.password", PASSWORD, None, mode=PER_BROKER),
    Row("ssl.keymanager.algorithm", STRING, "SunX509", mode=PER_BROKER),
    Row("ssl.keystore.certificate.chain", PASSWORD, None, mode=PER_BROKER),
    Row("ssl.keystore.key", PASSWORD, None, mode=PER_BROKER),
    Row("ssl.keystore.location", STRING, None, mode=PER_BROKER),
    Row("ssl.keystore.password", PASSWORD, None, mode=PER_BROKER),
    Row("ssl.keystore.type", STRING, "JKS", mode=PER_BROKER),
    Row("ssl.principal.mapping.rules", STRING, "DEFAULT"),
    Row("ssl.protocol", STRING, "TLSv1.3", mode=PER_BROKER),
    Row("ssl.provider", STRING, None, mode=PER_BROKER),
    Row("ssl.secure.random.implementation", STRING, None, mode=PER_BROKER),
    Row("ssl.trustmanager.algorithm", STRING, "PKIX", mode=PER_BROKER),
    Row("ssl.truststore.certificates", PASSWORD, None, mode=PER_BROKER),
    Row("ssl.truststore.location", STRING, None, mode=PER_BROKER),
    Row("ssl.truststore.password", PASSWORD, None, mode=PER_BROKER),
    Row("ssl.truststore.type", STRING, "JKS", mode=PER_BROKER),
    Row("understudy.principals", STRING, "", principal_rules, CLUSTER, visibility=WHEN_SET),
)
