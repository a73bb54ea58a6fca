-- Reads parts of one or several sessions: messages that are asked for by their packet ids, how many references stand in
-- a range of scores, and the last packet id. It changes nothing, so a user without any right to write may run it.
--
-- KEYS:    for each part: the sorted set, the last packet id, then n message keys.
-- ARGV:    for each part: n (0 to 1000); what else to read, any of the letters h (the last packet id) and v (the values
--          of the messages); the lowest and the highest score of the range, as ZCOUNT takes them.
-- RETURNS: for each part a list of six: the number of references in the range; the last packet id; when that ends; then
--          for each message its value (1 where values are not asked for), when it ends, and the score of its reference.
--          What is not there is nil; what is of another type is a status with the name of that type; an end is in Unix
--          ms, -1 for never and -2 for what is not there.
-- TWICE:   yes: it only reads.

local KEYS, ARGV = KEYS, ARGV
local call, pcall, find = redis.call, redis.pcall, string.find

-- A reply, or the type of the key where the command does not fit it.
local function typed(key, reply)
  if type(reply) == 'table' and reply.err then
    if find(reply.err, 'WRONGTYPE', 1, true) then
      return call('TYPE', key)
    end
    return error(reply)
  end
  return reply
end

local parts, key = {}, 1
for argument = 1, #ARGV, 4 do
  local count, what = tonumber(ARGV[argument]), ARGV[argument + 1]
  local set, last = KEYS[key], KEYS[key + 1]
  local size = typed(set, pcall('ZCOUNT', set, ARGV[argument + 2], ARGV[argument + 3]))
  local is_set = type(size) == 'number'
  local last_id, last_end = false, -2
  if find(what, 'h', 1, true) then
    last_id, last_end = typed(last, pcall('GET', last)), call('PEXPIRETIME', last)
  end
  local values, ends, scores = {}, {}, {}
  if count > 0 then
    local with_values = find(what, 'v', 1, true)
    if with_values then
      values = call('MGET', unpack(KEYS, key + 2, key + 1 + count))
    end
    if is_set then
      scores = call('ZMSCORE', set, unpack(KEYS, key + 2, key + 1 + count))
    end
    for n = 1, count do
      local message = KEYS[key + 1 + n]
      local ending = call('PEXPIRETIME', message)
      ends[n] = ending
      if ending == -2 then
        values[n] = false
      elseif not values[n] then
        local kind = call('TYPE', message)
        values[n] = kind.ok == 'string' and 1 or kind
      end
    end
  end
  parts[#parts + 1] = { size, last_id, last_end, values, ends, scores }
  key = key + 2 + count
end
return parts
