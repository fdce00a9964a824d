"""A schema registry beside the brokers: the REST API of Confluent's, kept in the topic `_schemas` as theirs is."""
