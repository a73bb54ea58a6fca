-- Writes messages under scratch keys as a session has them, measures what they take, and removes them again. All in one
-- call: whatever ends the caller, nothing of it is left.
--
-- KEYS:    1 a sorted set; 2 a last packet id; then n message keys. All are scratch keys that belong to nobody.
-- ARGV:    1 the last packet id; 2 'measure', or '' to write and remove only; 3 seconds after which the messages would go
--          by themselves; then n times: the message as JSON, its member in the set.
-- RETURNS: the bytes of the set, of the last packet id, and of all messages together, as MEMORY USAGE counts them; three
--          times 0 where nothing was measured.
-- TWICE:   yes: it leaves nothing behind.

local call = redis.call
local measure = ARGV[2] == 'measure'
local bytes = {0, 0, 0}

local function usage(key)
  return call('MEMORY', 'USAGE', key, 'SAMPLES', '0') or 0
end

-- What the user may not do is refused before anything is written.
call('DEL', KEYS[1])
if measure then
  usage(KEYS[1])
end
call('SET', KEYS[2], ARGV[1], 'EX', ARGV[3])
for place = 3, #KEYS do
  local argument = 2 * place - 2
  call('SET', KEYS[place], ARGV[argument], 'EX', ARGV[3])
  call('ZADD', KEYS[1], place, ARGV[argument + 1])
end
if measure then
  if #KEYS > 2 then
    bytes[1] = usage(KEYS[1])
  end
  bytes[2] = usage(KEYS[2])
  for place = 3, #KEYS do
    bytes[3] = bytes[3] + usage(KEYS[place])
  end
end
for place = 1, #KEYS do
  call('DEL', KEYS[place])
end
return bytes
