-- When the state of the directory began: a reset, or the restore of a snapshot, makes earlier entries meaningless for the logs; and a
-- topic's deletion, those of the topic.
SELECT max(struct(run, era)) AS since FROM (SELECT run, era FROM calls WHERE era > 0 UNION ALL SELECT '', 0)
