"""Classic groups: JoinGroup, SyncGroup, generations."""
