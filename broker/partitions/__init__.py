"""What a partition's leader does: produce, fetch, share partitions, transaction markers."""
