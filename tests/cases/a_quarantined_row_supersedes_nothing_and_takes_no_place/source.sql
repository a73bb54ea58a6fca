insert into device_session_ctx values
    ('c', 0, 9, 10);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 9, 't', {{now-1000}}, 4, 'PUBLISH', 7, 'x'),
    ('c', 5, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'x'),
    ('c', 3, 't', {{now-1000}}, 5, 'PUBLISH', 1, 'x');
