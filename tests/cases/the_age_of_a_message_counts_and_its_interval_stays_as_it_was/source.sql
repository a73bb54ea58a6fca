insert into device_session_ctx values
    ('c', 0, 2, 3);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('c', 0, 't', {{now-600000}}, 1, 'PUBLISH', 1, 'x', 3600),
    ('c', 1, 't', {{now-86400000}}, 2, 'PUBLISH', 1, 'x', null),
    ('c', 2, 't', {{now-86400000}}, 3, 'PUBLISH', 1, 'x', 2147483647);
