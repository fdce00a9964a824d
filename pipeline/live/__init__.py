"""A running cluster for audits: a copy of its logs that grows step by step, and what its brokers report."""
