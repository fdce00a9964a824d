"""Histories: generated sequences of requests, played on both clusters, compared, and shrunk if the responses differ."""
