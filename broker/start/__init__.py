"""The process around a cluster: command line, event loop, signals, banner, ready file."""
