"""The standard library's unittest, with kafka-python: `python -m unittest examples/test_with_unittest.py`."""

import unittest
from typing import ClassVar

from kafka import KafkaProducer

import understudy


class OrdersTest(unittest.TestCase):
    kafka: ClassVar[understudy.Cluster]

    @classmethod
    def setUpClass(cls) -> None:
        cls.kafka = cls.enterClassContext(understudy.start(topics=["orders:1"]))

    def setUp(self) -> None:
        self.kafka.reset()

    def test_an_order_gets_an_offset(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self.kafka.bootstrap_servers)
        written = producer.send("orders", b"one").get(timeout=10)
        producer.close()
        self.assertEqual((written.topic, written.partition, written.offset), ("orders", 0, 0))
