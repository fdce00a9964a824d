"""The cluster's metadata, brokers and topics and what is set on them: a pure machine over ``__cluster_metadata``."""
