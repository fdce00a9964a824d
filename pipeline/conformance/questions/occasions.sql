-- title: exercised invariants
-- One row per invariant and client that had an occasion to violate it: the number of requests that could have, or of responses that forbade
-- it. Invariants that a client had no occasion to violate were not exercised, and are not listed here.
SELECT invariant, software, software_version, count(*) AS occasions
FROM occasions JOIN spoken USING (run, id)
GROUP BY invariant, software, software_version
ORDER BY software, software_version, invariant
