-- Reads the messages of one session in order, as the 2.x broker does when a client connects.
--
-- KEYS:    1 the session's sorted set. The messages' own keys are its members.
-- ARGV:    1 the session's limit; it bounds the set when messages are added, and nothing is cut off here.
-- RETURNS: the JSON of every member in score order. A member whose string is gone is left out and removed.
-- TWICE:   yes: it changes nothing but references without a message, and the second call finds none.

local set = KEYS[1]

local messages = {}
for _, key in ipairs(redis.call('ZRANGE', set, 0, -1)) do
  local message = redis.call('GET', key)
  if message then
    messages[#messages + 1] = message
  else
    redis.call('ZREM', set, key)
  end
end
return messages
