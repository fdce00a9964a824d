-- title: a bound of a log went back
-- severity: error
-- needs: live
-- The log's start, its last stable offset or its high watermark was greater in an earlier step, and the topic is the same one: what
-- consumers had read is no longer in the log, or is there again.
SELECT topic, partition, offset, what, before, step FROM live_changes
