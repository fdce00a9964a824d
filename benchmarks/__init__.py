"""Benchmarks of Understudy and its peers, in one run, on one machine."""
