-- Notes a finished chunk in the journal of a shard, and says in which history of writes the shard is.
--
-- KEYS:    1 the journal, a hash.
-- ARGV:    nothing, to ask only; else 1 the chunk; 2 which try of it was finished; 3 the seconds that the journal stays.
-- RETURNS: the replication id of the server, or '' where it has none. It is another one after a restart and after a
--          failover: whatever was written under one and the same id is still there when what was written after it is.
-- TWICE:   yes: the same field with the same value.

local chunk, try, seconds = ARGV[1], ARGV[2], ARGV[3]

if chunk then
  redis.call('HSET', KEYS[1], chunk, try)
  redis.call('EXPIRE', KEYS[1], seconds)
end
return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
