"""A schema registry beside the brokers: Confluent's REST API, with its state in the topic `_schemas`, as in theirs."""
