insert into device_session_ctx values
    ('c', 0, 65538, 4);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 3, 't', {{now-2000}}, 4, 'PUBLISH', 1, 'old'),
    ('c', 65538, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'new'),
    ('c', 4, 't', {{now-1000}}, 5, 'PUBLISH', 1, 'x');
