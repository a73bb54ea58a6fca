insert into device_session_ctx values
    ('dev1', 0, 1, 2),
    ('{x', 0, 0, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('dev1', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('dev1', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x'),
    ('{x', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x');
