-- Writes messages of one or several sessions over what may stand there, each with its own packet id, score and deadline.
--
-- A key that holds another type is never overwritten. What is wrong with the arguments is found before the first write.
--
-- KEYS:    for each session: its sorted set, its last packet id, then its n message keys.
-- ARGV:    for each session: n (0 to 1000); its last packet id, or '' where this call is not the session's first one;
--          then n times: the message as JSON, its deadline in Unix ms, its score.
-- RETURNS: an empty list when all is written. Else the positions in KEYS of keys with another type. A session whose set
--          or last packet id is among them is left untouched; a message key among them is left as it is and gets no
--          reference.
-- TWICE:   yes: packet id, score and deadline come from the arguments.

local KEYS, ARGV = KEYS, ARGV
local pcall, find, tonumber = redis.pcall, string.find, tonumber

local MOST_MESSAGES = 1000 -- the members of one ZADD must fit on the Lua stack
local LAST_PACKET_ID = 65535
local MOST_SCORE = 9007199254740992 -- 2^53: a score is a double
local MOST_DEADLINE_DIGITS = 15 -- beyond any calendar, far from an overflow

local function bad(what, argument)
  return redis.error_reply('ERR ' .. what .. ' in argument ' .. argument)
end

local key, argument = 1, 1
while argument <= #ARGV do
  local count, last_id = ARGV[argument], ARGV[argument + 1]
  if not find(count, '^%d+$') or tonumber(count) > MOST_MESSAGES then
    return bad('no number of messages', argument)
  end
  count = tonumber(count)
  if argument + 1 + 3 * count > #ARGV or key + 1 + count > #KEYS then
    return bad('more messages than keys or values', argument)
  end
  if last_id ~= '' and (not find(last_id, '^%d+$') or tonumber(last_id) > LAST_PACKET_ID) then
    return bad('no last packet id', argument + 1)
  end
  for at = argument + 3, argument + 3 * count, 3 do
    local deadline, score = ARGV[at], ARGV[at + 1]
    if not find(deadline, '^[1-9]%d*$') or #deadline > MOST_DEADLINE_DIGITS then
      return bad('no deadline', at)
    end
    if not find(score, '^%d+$') or tonumber(score) > MOST_SCORE then
      return bad('no score', at + 1)
    end
  end
  key = key + 2 + count
  argument = argument + 2 + 3 * count
end
if key ~= #KEYS + 1 then
  return bad('fewer messages than keys', #ARGV)
end

local foreign = {}

-- The error of a reply that is not about the type of the key.
local function fault(reply)
  return type(reply) == 'table' and reply.err and not find(reply.err, 'WRONGTYPE', 1, true) and reply or nil
end

key, argument = 1, 1
while argument <= #ARGV do
  local set, count, last_id = KEYS[key], tonumber(ARGV[argument]), ARGV[argument + 1]
  local open = true

  local size = pcall('ZCARD', set)
  if type(size) == 'table' then
    if fault(size) then
      return size
    end
    foreign[#foreign + 1] = key
    open = false
  elseif last_id ~= '' then
    local old = pcall('SET', KEYS[key + 1], last_id, 'GET')
    if type(old) == 'table' then
      if fault(old) then
        return old
      end
      foreign[#foreign + 1] = key + 1
      open = false
    end
  end

  if open and count > 0 then
    local members, filled = {}, 0
    local at = argument + 2
    for place = key + 2, key + 1 + count do
      -- GET is there for the check of the old type: such a SET refuses what is no string.
      local old = pcall('SET', KEYS[place], ARGV[at], 'PXAT', ARGV[at + 1], 'GET')
      if type(old) == 'table' then
        if fault(old) then
          return old
        end
        foreign[#foreign + 1] = place
      else
        members[filled + 1] = ARGV[at + 2]
        members[filled + 2] = KEYS[place]
        filled = filled + 2
      end
      at = at + 3
    end
    if filled > 0 then
      redis.call('ZADD', set, unpack(members))
    end
  end
  key = key + 2 + count
  argument = argument + 2 + 3 * count
end

return foreign
