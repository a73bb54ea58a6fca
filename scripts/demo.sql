-- The sessions of a small TBMQ 1.4 broker: about 12,000 queued messages in about 300 sessions. Every value follows from
-- arithmetic, times count back from the moment of loading, and no deadline is nearer than half an hour.
create table device_session_ctx (
    client_id varchar(255) primary key,
    last_updated_time bigint not null,
    last_serial_number bigint,
    last_packet_id int
);
create table device_publish_msg (
    client_id varchar(255) not null,
    serial_number bigint not null,
    topic varchar not null,
    time bigint not null,
    packet_id int,
    packet_type varchar(255),
    qos int not null,
    payload bytea not null,
    user_properties varchar,
    retain boolean,
    msg_expiry_interval int,
    payload_format_indicator int,
    content_type varchar(255),
    response_topic varchar(255),
    correlation_data bytea,
    primary key (client_id, serial_number)
);
create index device_publish_msg_packet_id on device_publish_msg (client_id, packet_id);

create function pg_temp.ago(seconds bigint) returns bigint language sql as
    $$ select (extract(epoch from now()) * 1000)::bigint - seconds * 1000 $$;
create function pg_temp.packet_id(serial_number bigint) returns int language sql as
    $$ select (serial_number % 65535 + 1)::int $$;
-- The five kinds of expiry: absent, never (0), never delivered (negative), long passed, and still to come.
create function pg_temp.expiry(n bigint) returns int language sql as
    $$ select (array[null, 0, -1, 600, 864000])[n % 5 + 1] $$;

-- Meters that were offline for two days: JSON, properties on every fourth message, a few acknowledged in between.
insert into device_publish_msg
select format('meter-%s', lpad(m::text, 4, '0')), s, format('site/%s/meter/%s/set', m % 7, m), pg_temp.ago(172800 - n * 3600),
    pg_temp.packet_id(s), 'PUBLISH', 1,
    convert_to(format('{"setpoint":%s,"unit":"°C","seq":%s}', 18 + (m + n) % 6, n), 'UTF8'),
    case when n % 4 = 0 then format('{"props":[{"k":"tenant","v":"%s"},{"k":"path","v":"a/b"},{"k":"path","v":"Grüße"}]}', m % 7) end,
    false, null, 1, 'application/json', null, null
from generate_series(1, 200) m, generate_series(0, 41) n, lateral (select m * 1000::bigint + n) as serial (s)
where (m + n) % 21 <> 0;

-- Boilers: text, QoS 2 with handshakes that stopped after PUBREC, each kind of expiry, and messages older than the TTL.
insert into device_publish_msg
select format('boiler/%s', b), n, format('boiler/%s/alarm', b),
    pg_temp.ago(case when n < 5 then 8 * 86400 else 86400 + n * 60 end),
    pg_temp.packet_id(n), case n % 7 when 3 then 'PUBREL' when 5 then null else 'PUBLISH' end, 2,
    convert_to(format('pressure %s.%s bar', b % 4, n), 'UTF8'), null, null, pg_temp.expiry(n), null, null, null, null
from generate_series(1, 40) b, generate_series(0::bigint, 49) n;

-- Cameras that went over the last packet id: binary payloads, requests that wait for a response.
insert into device_publish_msg
select format('camera-%s', c), s, format('camera/%s/request', c), pg_temp.ago(65600 - s + 3600), pg_temp.packet_id(s), 'PUBLISH', 1,
    decode(md5(format('%s/%s', c, s)) || '00ff5c0d0a', 'hex'), null, false, 86400, 0, 'application/octet-stream',
    format('camera/%s/response', c), decode(md5(s::text), 'hex')
from generate_series(1, 6) c, generate_series(65500::bigint, 65569) s;

-- Lamps: retained topics that were cleared, which is an empty payload; empty is not absent.
insert into device_publish_msg
select format('lamp-%s', l), n, format('lamp/%s/state', l), pg_temp.ago(7200 - n), pg_temp.packet_id(n), 'PUBLISH', 1,
    '', null, true, null, null, '', null, ''
from generate_series(1, 10) l, generate_series(0::bigint, 19) n;

-- One client that has been away for long: more messages than a session keeps.
insert into device_publish_msg
select 'archive', n, 'archive/line', pg_temp.ago(86400 - n), pg_temp.packet_id(n), 'PUBLISH', 1,
    convert_to(format('line %s', n), 'UTF8'), null, false, null, null, null, null, null
from generate_series(0::bigint, 1199) n;

-- Two shared subscriptions, one with a context and one whose context the broker has removed after a delivery.
insert into device_publish_msg
select key, n, topic, pg_temp.ago(1800 - n), pg_temp.packet_id(n), 'PUBLISH', 1,
    convert_to(format('{"event":%s}', n), 'UTF8'), null, false, 864000, null, null, null, null
from (values ('ss_alarms_site/+/alarm', 'site/3/alarm', 300), ('ss_audit_#', 'audit/login', 25)) as shared (key, topic, messages),
    lateral generate_series(0::bigint, messages - 1) n;

-- Client ids may be any text.
insert into device_publish_msg
select id, n, 'odd/id', pg_temp.ago(600 - n), pg_temp.packet_id(n), 'PUBLISH', 1, convert_to(id, 'UTF8'), null, false, null, null, null, null, null
from unnest(array[' leading space', '{', 'a{b}c', '*?[x]', '"double" ''single'' \back\', 'Zoë 🚀 ключ', '$SYS/%41:1']) id,
    generate_series(0::bigint, 2) n;

-- The session that the demo looks at: one unacknowledged message from a whole turn of packet ids ago, then the wrap.
insert into device_publish_msg
select 'gateway-7', serial, 'gateway/7/' || word, pg_temp.ago(age), pg_temp.packet_id(serial), type, qos,
    convert_to(text, 'UTF8'), null, false, expiry, null, null, null, null
from (values
    (0::bigint, 518400, 'PUBLISH', 1, null, 'config', 'the first of all'),
    (65532, 14400, 'PUBLISH', 1, 600, 'status', 'too old'),
    (65533, 10800, 'PUBLISH', 1, 0, 'config', 'never expires'),
    (65534, 7200, 'PUBREL', 2, 600, 'order', 'half acknowledged'),
    (65535, 5400, 'PUBLISH', 1, null, 'status', 'after the wrap'),
    (65536, 3600, 'PUBLISH', 2, 864000, 'order', 'ten days'),
    (65537, 3600, 'PUBLISH', 1, -1, 'order', 'never delivered'),
    (65538, -1800, 'PUBLISH', 1, null, 'status', 'from a clock ahead')
) as row (serial, age, type, qos, expiry, word, text);

-- A context for each session, except the one that the broker removed …
insert into device_session_ctx
select client_id, max(time), max(serial_number), pg_temp.packet_id(max(serial_number))
from device_publish_msg where client_id <> 'ss_audit_#' group by client_id;
-- … sessions that acknowledged everything, and sessions that only share a subscription.
insert into device_session_ctx
select format('badge-%s', b), pg_temp.ago(b * 60), b * 100, b * 100 + 1 from generate_series(1, 20) b
union all
select format('worker-%s', w), pg_temp.ago(w * 60), -1, 0 from generate_series(1, 5) w;

analyze device_session_ctx, device_publish_msg;
