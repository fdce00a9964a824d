"""Kafka's settings as data: tables, parsing, layers, what DescribeConfigs tells and what AlterConfigs may store.

A setting is one row in `tables`, its documentation one text in `texts`. `BrokerSettings` resolves a broker's layers and
answers the rest of the broker; `topics`, `groups` and `client_metrics` do the same for those resources. Nothing here
waits, reads a clock or stores.
"""

from broker.settings.layers import BrokerSettings
from broker.settings.model import ConfigSource, ConfigType, Operation, ResourceType, Row, UpdateMode, Value

__all__ = ["BrokerSettings", "ConfigSource", "ConfigType", "Operation", "ResourceType", "Row", "UpdateMode", "Value"]
