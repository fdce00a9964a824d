"""Rules shared by the group protocols with server-side assignment (KIP-848, KIP-932, KIP-1071)."""
