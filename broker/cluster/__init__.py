"""The cluster as a whole: start, reset, snapshots, starting and stopping brokers, the emulated release."""
