-- title: a bound of a log went back
-- severity: error
-- needs: live
-- The log start, last stable offset or high watermark was greater in an earlier step, and the topic is the same one: what consumers had
-- read is no longer in the log, or is there again.
SELECT topic, partition, offset, what, before, step FROM live_changes
