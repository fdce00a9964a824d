-- title: what was exercised
-- One row per invariant and client that had an occasion to break it: so many requests could have, or so many answers forbade what would
-- have. A client without an occasion has kept nothing: those invariants were not exercised, and are not listed here.
SELECT invariant, software, software_version, count(*) AS occasions
FROM occasions JOIN spoken USING (run, id)
GROUP BY invariant, software, software_version
ORDER BY software, software_version, invariant
