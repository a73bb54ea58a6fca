insert into device_session_ctx values
    ('c', 0, 3, 4),
    ('same', 0, 2, 9);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x'),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x'),
    ('same', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x');
