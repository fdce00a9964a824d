"""Documentation of the settings of `broker.settings.tables.security`."""

TEXTS = {
    "allow.everyone.if.no.acl.found": (
        "Whether every principal may use a resource without ACLs; otherwise only super users may."
    ),
    "authorizer.class.name": (
        "Class that authorizes requests; empty allows everything. "
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer keeps ACLs in the metadata."
    ),
    "delegation.token.expiry.check.interval.ms": "How often expired delegation tokens are removed.",
    "delegation.token.expiry.time.ms": "How long a delegation token is valid before it has to be renewed.",
    "delegation.token.max.lifetime.ms": "Maximum lifetime of a delegation token, renewals included.",
    "delegation.token.secret.key": (
        "Secret that signs delegation tokens. All brokers must have the same; without it delegation tokens are "
        "disabled."
    ),
    "principal.builder.class": "Class that builds a principal from the result of authentication.",
    "security.inter.broker.protocol": "Security protocol between brokers, if inter.broker.listener.name is not set.",
    "security.providers": "Classes that add security algorithms to the JVM.",
    "ssl.allow.dn.changes": "Whether a new keystore may have another distinguished name than the old one.",
    "ssl.allow.san.changes": "Whether a new keystore may omit subject alternative names of the old one.",
    "ssl.cipher.suites": "Cipher suites that may be negotiated; if empty, all that the TLS library supports.",
    "ssl.client.auth": (
        "Whether clients must present a certificate (required), may (requested) or are not asked for one (none)."
    ),
    "ssl.enabled.protocols": "TLS versions that may be negotiated.",
    "ssl.endpoint.identification.algorithm": (
        "How a server's name is checked against its certificate; empty disables the check."
    ),
    "ssl.engine.factory.class": "Class that creates TLS engines, instead of the built-in one.",
    "ssl.key.password": "Password of the private key.",
    "ssl.keymanager.algorithm": "Algorithm of the key manager.",
    "ssl.keystore.certificate.chain": "The certificate chain itself, in PEM.",
    "ssl.keystore.key": "The private key itself, in PEM.",
    "ssl.keystore.location": "File with the private key and its certificates.",
    "ssl.keystore.password": "Password of the keystore file.",
    "ssl.keystore.type": "Format of the keystore file: JKS, PKCS12 or PEM.",
    "ssl.principal.mapping.rules": (
        "Rules that map the distinguished name of a client's certificate to a short user name; the first that matches "
        "is used, DEFAULT keeps the whole name."
    ),
    "ssl.protocol": "Highest TLS version of connections.",
    "ssl.provider": "Security provider of TLS; if unset, the JVM's default.",
    "ssl.secure.random.implementation": "Source of random numbers for TLS.",
    "ssl.trustmanager.algorithm": "Algorithm of the trust manager.",
    "ssl.truststore.certificates": "Trusted certificates themselves, in PEM.",
    "ssl.truststore.location": "File with trusted certificates.",
    "ssl.truststore.password": "Password of the truststore file; without one it is read but not checked.",
    "ssl.truststore.type": "Format of the truststore file: JKS, PKCS12 or PEM.",
    "super.users": "Principals that are allowed everything, separated by semicolons.",
    "understudy.principals": (
        "Principals of clients that have not authenticated, by client id: rules such as "
        "orders-*=User:orders;*=User:guest, of which the first that matches is used."
    ),
}
