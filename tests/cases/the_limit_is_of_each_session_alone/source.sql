insert into device_session_ctx values
    ('a', 0, 2, 3),
    ('b', 0, 0, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('a', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('a', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x'),
    ('a', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x'),
    ('b', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x');
