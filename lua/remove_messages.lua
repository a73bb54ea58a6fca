-- Removes everything of one session, as the 2.x broker does when a session is cleared.
--
-- KEYS:    1 the session's sorted set; 2 its last packet id. The messages' own keys are the members of the set.
-- ARGV:    none.
-- RETURNS: OK, whether or not the session was there.
-- TWICE:   yes: what is gone stays gone. The strings go before the set that names them, so that a call which stopped
--          half way (a slot in migration) can be repeated.

local set, last_key = KEYS[1], KEYS[2]

local own = set .. '_'
for _, key in ipairs(redis.call('ZRANGE', set, 0, -1)) do
  if key:sub(1, #own) == own then
    redis.call('DEL', key)
  end
end
redis.call('DEL', set, last_key)
return 'OK'
