-- When the state of the directory began: a reset, or the restore of a snapshot, makes earlier entries meaningless for the logs; and a
-- topic's deletion, those of the topic.
SELECT coalesce(max(if(era > 0, struct(run, era), NULL)), struct('' AS run, 0 AS era)) AS since FROM calls
