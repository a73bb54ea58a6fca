insert into device_session_ctx values
    ('c', 0, 9, 10);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 9, 't', {{now-1000}}, 10, 'PUBLISH', 1, 'x'),
    ('c', 8, 't', {{now-1000}}, 9, 'PUBLISH', 1, 'x'),
    ('c', 7, 't', {{now-1000}}, 9, 'PUBLISH', 1, 'x'),
    ('c', 6, 't', {{now-1000}}, 9, 'PUBLISH', 1, 'x');
