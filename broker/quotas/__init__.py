"""Client quotas: rates, token buckets, and the entities whose usage is counted."""
