-- Appends messages to one session, as the 2.x broker does.
--
-- Unlike the broker's own script, a bad expiry leaves nothing half done: everything is checked before the first write.
-- An interval of 0 means "never expires" in 1.x, so it takes the default TTL; a negative or broken one is an error.
--
-- KEYS:    1 the session's sorted set; 2 its last packet id. The messages' own keys follow from the ids given here:
--          <set>_<packet id>, in the same slot.
-- ARGV:    1 most messages the session keeps; 2 JSON array of messages; 3 default TTL in seconds.
-- RETURNS: the last packet id before the call, 0 where there was none.
-- TWICE:   no: each call gives new packet ids, so a repeat appends the messages again. The broker's way; the migration
--          itself never calls it.

local set, last_key = KEYS[1], KEYS[2]

local MOST_SECONDS = 4294967295 -- what MQTT can express
local LAST_PACKET_ID = 65535

local function whole(value, least, most)
  return type(value) == 'number' and value >= least and value <= most and value % 1 == 0
end

local limit, default_ttl = tonumber(ARGV[1]), tonumber(ARGV[3])
if not whole(limit, 1, LAST_PACKET_ID) then
  return redis.error_reply('ERR the limit is not a number from 1 to 65535')
end
if not whole(default_ttl, 1, MOST_SECONDS) then
  return redis.error_reply('ERR the default TTL is not a positive number of seconds')
end
local decoded, messages = pcall(cjson.decode, ARGV[2])
if not decoded or type(messages) ~= 'table' then
  return redis.error_reply('ERR the messages are not a JSON array')
end
for name in pairs(messages) do
  if type(name) ~= 'number' then
    return redis.error_reply('ERR the messages are not a JSON array')
  end
end
local ttls = {}
for number, message in ipairs(messages) do
  if type(message) ~= 'table' then
    return redis.error_reply('ERR message ' .. number .. ' is not an object')
  end
  local interval = message.msgExpiryInterval
  if interval == nil or interval == cjson.null or interval == 0 then
    interval = default_ttl
  end
  if not whole(interval, 1, MOST_SECONDS) then
    return redis.error_reply('ERR message ' .. number .. ' has an expiry interval that is not a number of seconds')
  end
  ttls[number] = string.format('%.0f', interval)
end

local previous = tonumber(redis.call('GET', last_key) or 0)
if not whole(previous, 0, LAST_PACKET_ID) then
  return redis.error_reply('ERR the last packet id is not a number from 0 to 65535')
end
local newest = redis.call('ZRANGE', set, 0, 0, 'REV', 'WITHSCORES')
local score = tonumber(newest[2] or previous)

local packet_id = previous
for number, message in ipairs(messages) do
  packet_id = packet_id % LAST_PACKET_ID + 1
  score = score + 1
  message.packetId = packet_id
  local key = set .. '_' .. packet_id
  redis.call('SET', key, cjson.encode(message), 'EX', ttls[number])
  redis.call('ZADD', set, string.format('%.17g', score), key)
end
redis.call('SET', last_key, packet_id)

local excess = redis.call('ZCARD', set) - limit
if excess > 0 then
  local own = set .. '_'
  for _, key in ipairs(redis.call('ZRANGE', set, 0, excess - 1)) do
    if key:sub(1, #own) == own then
      redis.call('DEL', key)
    end
    redis.call('ZREM', set, key)
  end
end
return previous
