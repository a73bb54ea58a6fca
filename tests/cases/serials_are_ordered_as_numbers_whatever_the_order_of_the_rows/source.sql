insert into device_session_ctx values
    ('c', 0, 100, 101);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 10, 't', {{now-1000}}, 11, 'PUBLISH', 1, 'x'),
    ('c', 9, 't', {{now-1000}}, 10, 'PUBLISH', 1, 'x'),
    ('c', 100, 't', {{now-1000}}, 101, 'PUBLISH', 1, 'x'),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x');
