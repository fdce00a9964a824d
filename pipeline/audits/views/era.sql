-- Where the state of the directory began: a reset, or the restore of a snapshot, makes everything before it meaningless for the
-- logs; and what was known of a topic before it was deleted.
SELECT coalesce(max(if(era > 0, struct(run, era), NULL)), struct('' AS run, 0 AS era)) AS since FROM calls
