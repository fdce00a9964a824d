"""The cluster as a whole: start-up, reset, brokers that come and go, the release that it emulates."""
