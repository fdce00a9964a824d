"""Kafka's settings as data: tables, parsing, layers, DescribeConfigs and AlterConfigs.

A setting is one row in `tables`, its documentation one text in `docs`. `BrokerSettings` resolves a broker's layers for
the rest of the broker; `topics`, `groups` and `client_metrics` do the same for those resources. Nothing here waits,
reads a clock or stores.
"""

from broker.settings.broker_settings import BrokerSettings
from broker.settings.model import ConfigResourceType, ConfigSource, ConfigType, Operation, Row, UpdateMode, Value

__all__ = [
    "BrokerSettings",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigType",
    "Operation",
    "Row",
    "UpdateMode",
    "Value",
]
