"""The control plane: steering over HTTP."""
