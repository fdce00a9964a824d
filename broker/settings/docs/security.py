"""Documentation of the settings of `broker.settings.tables.security`."""

TEXTS = {
    "allow.everyone.if.no.acl.found": (
        "Whether every principal may use a resource without ACLs; otherwise only super users may."
    ),
    "authorizer.class.name": (
        "Class that decides who may do what; empty allows everything. "
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer keeps ACLs in the metadata."
    ),
    "delegation.token.expiry.check.interval.ms": "How often expired delegation tokens are looked for and removed.",
    "delegation.token.expiry.time.ms": "How long a delegation token is valid before it has to be renewed.",
    "delegation.token.max.lifetime.ms": "How long a delegation token can be kept alive by renewing it.",
    "delegation.token.secret.key": (
        "Secret from which delegation tokens are made. All brokers share it; without it there are no tokens."
    ),
    "principal.builder.class": "Class that makes a principal out of what authentication found out.",
    "security.inter.broker.protocol": (
        "Security protocol between brokers, where inter.broker.listener.name does not name a listener."
    ),
    "security.providers": "Classes that add security algorithms to the Java machine.",
    "ssl.allow.dn.changes": "Whether a new keystore may carry another distinguished name than the old one.",
    "ssl.allow.san.changes": "Whether a new keystore may be without alternative names that the old one has.",
    "ssl.cipher.suites": "Cipher suites that may be negotiated; empty allows all that the TLS library does.",
    "ssl.client.auth": "Whether clients must show a certificate (required), may (requested) or need not (none).",
    "ssl.enabled.protocols": "TLS versions that may be negotiated.",
    "ssl.endpoint.identification.algorithm": (
        "How a server's name is checked against its certificate; empty switches the check off."
    ),
    "ssl.engine.factory.class": "Class that makes TLS engines, in the place of the built-in one.",
    "ssl.key.password": "Password of the private key.",
    "ssl.keymanager.algorithm": "Algorithm of the key manager.",
    "ssl.keystore.certificate.chain": "The certificate chain itself, in PEM.",
    "ssl.keystore.key": "The private key itself, in PEM.",
    "ssl.keystore.location": "File with the private key and its certificates.",
    "ssl.keystore.password": "Password of that file.",
    "ssl.keystore.type": "Format of that file: JKS, PKCS12 or PEM.",
    "ssl.principal.mapping.rules": (
        "Rules that turn the distinguished name of a client's certificate into a short user name; the first that "
        "fits counts, DEFAULT keeps the whole name."
    ),
    "ssl.protocol": "Highest TLS version that connections are made with.",
    "ssl.provider": "Security provider of TLS; unset, the Java machine's own.",
    "ssl.secure.random.implementation": "Source of random numbers for TLS.",
    "ssl.trustmanager.algorithm": "Algorithm of the trust manager.",
    "ssl.truststore.certificates": "Trusted certificates themselves, in PEM.",
    "ssl.truststore.location": "File with trusted certificates.",
    "ssl.truststore.password": "Password of that file; without one it is read but not checked.",
    "ssl.truststore.type": "Format of that file: JKS, PKCS12 or PEM.",
    "super.users": "Principals that may do everything, separated by semicolons.",
    "understudy.principals": (
        "As whom clients that have not authenticated are taken, by their client ids: rules such as "
        "orders-*=User:orders;*=User:guest, of which the first that fits counts."
    ),
}
