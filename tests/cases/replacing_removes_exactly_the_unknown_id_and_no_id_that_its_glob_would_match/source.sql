insert into device_session_ctx values
    ('ab', 0, 0, 1),
    ('a?', 0, 0, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('ab', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('a?', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x');
