"""Partition logs in Kafka's own file formats, in memory or on disk.

No sockets, no tasks, no clock, no random numbers: time and randomness are arguments.
"""
