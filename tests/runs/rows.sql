-- A small broker: 293 sessions, 5,422 rows. Every value follows from arithmetic; no deadline is nearer than a day.
create function pg_temp.ago(seconds bigint) returns bigint language sql as
    $$ select (extract(epoch from now()) * 1000)::bigint - seconds * 1000 $$;
create function pg_temp.packet_id(serial_number bigint) returns int language sql as
    $$ select (serial_number % 65535 + 1)::int $$;

-- 240 devices of ten rows: the first is older than the TTL, the fifth was never to be delivered, the eighth is half
-- acknowledged, and eight of ten are to be carried.
insert into device_publish_msg
select format('device-%s', lpad(d::text, 3, '0')), 100 + n, format('device/%s/set', d), pg_temp.ago(case n when 0 then 8 else 1 end * 86400),
    pg_temp.packet_id(100 + n), case n when 7 then 'PUBREL' else 'PUBLISH' end, case n when 7 then 2 else 1 end,
    convert_to(format('{"set":%s}', n), 'UTF8'), case n when 2 then '{"props":[{"k":"unit","v":"°C"}]}' end,
    false, (array[null, null, 864000, 0, -1, null, null, 600, null, null])[n + 1], null, null, null, null
from generate_series(1, 240) d, generate_series(0::bigint, 9) n;

-- One session of some thousand rows, over the last packet id.
insert into device_publish_msg
select 'archive', s, 'archive/line', pg_temp.ago(86400), pg_temp.packet_id(s), 'PUBLISH', 1, convert_to(format('line %s', s), 'UTF8'),
    null, null, null, null, null, null, null
from generate_series(64000::bigint, 66999) s;

-- Two rows of one packet id, a whole turn apart.
insert into device_publish_msg
select 'twice', s, 'twice', pg_temp.ago(86400), pg_temp.packet_id(s), 'PUBLISH', 1, 'x', null, null, null, null, null, null, null
from unnest(array[0, 65535, 65536]::bigint[]) s;

-- A shared subscription whose context is gone.
insert into device_publish_msg
select 'ss_audit_#', s, 'audit', pg_temp.ago(86400), pg_temp.packet_id(s), 'PUBLISH', 1, 'x', null, null, null, null, null, null, null
from generate_series(0::bigint, 4) s;

-- Client ids may be any text.
insert into device_publish_msg
select id, s, 'odd/id', pg_temp.ago(86400), pg_temp.packet_id(s), 'PUBLISH', 1, convert_to(id, 'UTF8'), null, false, null, null, null, null, null
from unnest(array[' leading space', '{', 'a{b}c', '*?[x]', '"double" ''single'' \back\', 'Zoë 🚀 ключ', '$SYS/%41:1']) id,
    generate_series(0::bigint, 1) s;

insert into device_session_ctx
select client_id, max(time), max(serial_number), pg_temp.packet_id(max(serial_number))
from device_publish_msg where client_id <> 'ss_audit_#' group by client_id;
-- Sessions that acknowledged everything, and sessions that only share a subscription.
insert into device_session_ctx
select format('badge-%s', lpad(b::text, 2, '0')), pg_temp.ago(60), b * 100, b * 100 + 1 from generate_series(1, 40) b
union all
select format('worker-%s', w), pg_temp.ago(60), -1, 0 from generate_series(1, 3) w;

analyze device_session_ctx, device_publish_msg;
