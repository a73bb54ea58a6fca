insert into device_session_ctx values
    ('c', 0, 0, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x');
