do $$ begin execute format('alter database %I set bytea_output = escape', current_database()); end $$;
do $$ begin execute format('alter role postgres in database %I set bytea_output = escape', current_database()); end $$;
insert into device_session_ctx values
    ('c', 0, 2, 3);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, correlation_data) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '\x00ff5c7b7d', '\x5c303030'),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'hello', null),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, '\x', '\x');
