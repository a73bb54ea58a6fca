-- Marks one message as released (PUBREL), as the 2.x broker does on PUBREC.
--
-- Unlike the broker's own script, this one keeps the message's TTL: without it the string would stay for ever.
--
-- KEYS:    1 the session's sorted set. The message's own key is <set>_<packet id>.
-- ARGV:    1 packet id.
-- RETURNS: OK, whether or not the message was there.
-- TWICE:   yes: a released message is left as it is, with the deadline it had.

local key = KEYS[1] .. '_' .. ARGV[1]

local json = redis.call('GET', key)
if json then
  local message = cjson.decode(json)
  if message.packetType ~= 'PUBREL' then
    message.packetType = 'PUBREL'
    redis.call('SET', key, cjson.encode(message), 'KEEPTTL')
  end
end
return 'OK'
