insert into device_session_ctx values
    ('c', 0, 5, 6);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('c', 0, 't', 0, 1, 'PUBLISH', 1, 'x', null),
    ('c', 1, 't', -1, 2, 'PUBLISH', 1, 'x', null),
    ('c', 2, 't', -9223372036854775808, 3, 'PUBLISH', 1, 'x', null),
    ('c', 3, 't', 0, 4, 'PUBLISH', 1, 'x', 2147483647),
    ('c', 4, 't', -9223372036854775808, 5, 'PUBREL', 2, 'x', null),
    ('c', 5, 't', 1, 6, 'PUBREL', 2, 'x', null);
