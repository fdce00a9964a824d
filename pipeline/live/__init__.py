"""A running cluster as an audit sees it: the copy of its logs that grows step by step, and what its brokers answer."""
