"""Client quotas: rates, token buckets, and who is measured with whom."""
