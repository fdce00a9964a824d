"""What the group protocols with server-side assignment share (KIP-848, KIP-932, KIP-1071)."""
