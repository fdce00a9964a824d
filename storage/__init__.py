"""What is remembered: partition logs in Kafka's own file formats, in memory or on disk.

No sockets, no tasks, no clock, no chance: time and randomness are arguments.
"""
