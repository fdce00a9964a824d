-- title: a coordinator's record that cannot be read
-- severity: error
-- A record of `__consumer_offsets`, `__transaction_state`, `__share_group_state` or `__cluster_metadata` is not one that its coordinator
-- writes. A coordinator that loads the partition skips it, or fails; the checks of groups and transactions ignore it.
SELECT DISTINCT topic, partition, offset, kind, reason
FROM state_unknown
WHERE reason IS NOT NULL
