insert into device_session_ctx values
    ('c', 0, 3, 4);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('c', 0, 't', {{now+60000}}, 1, 'PUBLISH', 1, 'x', null),
    ('c', 1, 't', {{now+31536000000}}, 2, 'PUBLISH', 1, 'x', 60),
    ('c', 2, 't', {{now+31708800000}}, 3, 'PUBLISH', 1, 'x', null),
    ('c', 3, 't', 9223372036854775807, 4, 'PUBREL', 1, 'x', null);
