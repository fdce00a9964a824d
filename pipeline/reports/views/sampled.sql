-- The sample of values, with their kinds.
SELECT *, value_kind(value) AS kind FROM sampled_values
