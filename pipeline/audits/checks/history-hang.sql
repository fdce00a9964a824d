-- title: a call did not return
-- severity: error
-- needs: history
-- The program gave up waiting for a call of its client, which should have returned or failed by then.
SELECT client, call AS what, file, line FROM client_events WHERE event = 'hung'
