insert into device_session_ctx values
    ('c', 0, 65535, 1),
    ('old', 0, 65534, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 65533, 't', {{now-3000}}, 65534, 'PUBLISH', 1, 'x'),
    ('c', 65534, 't', {{now-2000}}, 65535, 'PUBLISH', 1, 'x'),
    ('c', 65535, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('old', 65533, 't', {{now-1000}}, 65534, 'PUBLISH', 1, 'x'),
    ('old', 65534, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x');
