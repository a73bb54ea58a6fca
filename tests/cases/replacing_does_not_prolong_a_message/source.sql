insert into device_session_ctx values
    ('c', 0, 1, 2);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 0, 't', {{now-86400000}}, 1, 'PUBLISH', 1, 'x'),
    ('c', 1, 't', {{now-86400000}}, 2, 'PUBREL', 2, 'x');
