"""TLS: contexts, stores, cipher suites, principals of certificates."""
