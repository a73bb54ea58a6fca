-- Removes the oldest messages of one or several sessions of one slot, or whole sessions, a bounded number a call.
--
-- KEYS:    for each session: its sorted set, its last packet id. The messages' own keys are found through the scores;
--          only a member that begins with <set>_ is taken for one.
-- ARGV:    1 budget, the most members to visit in this call (1 to 100000); then for each session the lowest score to
--          keep, or +inf to remove all of it, its last packet id included.
-- RETURNS: the number (from 1) of the first session that is not finished, or 0; the list of the numbers of sessions
--          whose set or last packet id has another type: those are left alone. Sessions after an unfinished one were
--          not looked at. A message key that is no string stays; only its reference goes.
-- TWICE:   yes: what is gone stays gone. Strings go before the members that name them and the last packet id goes last,
--          so that a call which stopped half way (a slot in migration) can be repeated.

local find = string.find

local MOST_BUDGET = 100000
local PAGE = 500 -- members of one ZREM: they must fit on the Lua stack

local budget = find(ARGV[1] or '', '^%d+$') and tonumber(ARGV[1])
if not budget or budget < 1 or budget > MOST_BUDGET then
  return redis.error_reply('ERR the budget is not a number from 1 to 100000')
end
if #KEYS ~= 2 * (#ARGV - 1) then
  return redis.error_reply('ERR two keys and one score belong to each session')
end
for number = 2, #ARGV do
  if ARGV[number] ~= '+inf' and not find(ARGV[number], '^%d+$') then
    return redis.error_reply('ERR no score in argument ' .. number)
  end
end

local function is(key, wanted)
  local kind = redis.call('TYPE', key).ok
  return kind == wanted or kind == 'none'
end

-- Whether the key may be deleted; an error that is not about its type ends the script.
local function is_string(key)
  local length = redis.pcall('STRLEN', key)
  if type(length) ~= 'table' then
    return true
  end
  if not find(length.err, 'WRONGTYPE', 1, true) then
    error(length)
  end
  return false
end

local foreign = {}
local left = budget
for session = 1, #ARGV - 1 do
  if left == 0 then
    return { session, foreign }
  end
  local set, last_key, lowest = KEYS[2 * session - 1], KEYS[2 * session], ARGV[session + 1]
  if not is(set, 'zset') or not is(last_key, 'string') then
    foreign[#foreign + 1] = session
  else
    local own = set .. '_'
    local finished = false
    while not finished do
      if left == 0 then
        return { session, foreign }
      end
      local page = math.min(left, PAGE)
      local members
      if lowest == '+inf' then
        members = redis.call('ZRANGE', set, 0, page - 1)
      else
        members = redis.call('ZRANGE', set, '-inf', '(' .. lowest, 'BYSCORE', 'LIMIT', 0, page)
      end
      local strings = {}
      for _, member in ipairs(members) do
        if member:sub(1, #own) == own and is_string(member) then
          strings[#strings + 1] = member
        end
      end
      if #strings > 0 then
        redis.call('DEL', unpack(strings))
      end
      if #members > 0 then
        redis.call('ZREM', set, unpack(members))
      end
      left = left - #members
      finished = #members < page
    end
    if lowest == '+inf' then
      redis.call('DEL', last_key)
    end
  end
end
return { 0, foreign }
