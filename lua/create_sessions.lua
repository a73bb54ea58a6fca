-- Writes messages of one or several sessions that are known to be absent, each with its own packet id, score and
-- deadline. This is the short path: the arguments are the tool's own numbers and are not checked again.
--
-- KEYS:    for each session: its sorted set, its last packet id, then its n message keys.
-- ARGV:    for each session: n (0 to 1000); its last packet id, or '' where this call is not the session's first one;
--          then n times: the message as JSON, its deadline in Unix ms, its score.
-- RETURNS: an empty list when all is written. Else the numbers (from 1) of the sessions whose last packet id is there
--          already with another value: they belong to somebody else and are left untouched.
-- TWICE:   yes: packet id, score and deadline come from the arguments, and an equal last packet id is our own earlier
--          call.

local KEYS, ARGV, call = KEYS, ARGV, redis.call
local occupied = {}
local key, argument, session = 1, 1, 0
local arguments = #ARGV

while argument <= arguments do
  session = session + 1
  local count, last_id = tonumber(ARGV[argument]), ARGV[argument + 1]
  local ours = true
  if last_id ~= '' then
    local old = call('SET', KEYS[key + 1], last_id, 'NX', 'GET')
    ours = not old or old == last_id
  end
  local at = argument + 2
  -- GET spares a reply that would become a table, and refuses to overwrite what is no string.
  if not ours then
    occupied[#occupied + 1] = session
  elseif count == 1 then
    call('SET', KEYS[key + 2], ARGV[at], 'PXAT', ARGV[at + 1], 'GET')
    call('ZADD', KEYS[key], ARGV[at + 2], KEYS[key + 2])
  elseif count > 1 then
    local members, filled = {}, 0
    for place = key + 2, key + 1 + count do
      call('SET', KEYS[place], ARGV[at], 'PXAT', ARGV[at + 1], 'GET')
      members[filled + 1] = ARGV[at + 2]
      members[filled + 2] = KEYS[place]
      filled = filled + 2
      at = at + 3
    end
    call('ZADD', KEYS[key], unpack(members))
  end
  key = key + 2 + count
  argument = argument + 2 + 3 * count
end
return occupied
