insert into device_session_ctx values
    ('c', 0, 41, 42);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 5, 't', {{now-1000}}, 6, 'PUBLISH', 1, 'x');
