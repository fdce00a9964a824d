"""Metadata controller: brokers, topics, settings and features, a state machine over ``__cluster_metadata``."""
