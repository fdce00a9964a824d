-- title: a record without identity
-- severity: warning
-- needs: id
-- The record has no such key, header or field: whether it was processed once cannot be checked.
SELECT topic, partition, offset, role FROM identified WHERE id IS NULL
