-- Removes one message of one session, as the 2.x broker does on PUBACK and PUBCOMP.
--
-- KEYS:    1 the session's sorted set. The message's own key is <set>_<packet id>.
-- ARGV:    1 packet id.
-- RETURNS: OK, whether or not the message was there.
-- TWICE:   yes: what is gone stays gone.

local set = KEYS[1]
local key = set .. '_' .. ARGV[1]

redis.call('ZREM', set, key)
redis.call('DEL', key)
return 'OK'
