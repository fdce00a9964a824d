"""The control plane: an HTTP API to observe and control the cluster."""
