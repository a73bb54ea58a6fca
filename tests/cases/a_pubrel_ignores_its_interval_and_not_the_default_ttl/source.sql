insert into device_session_ctx values
    ('c', 0, 4, 5);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('c', 0, 't', {{now-86400000}}, 1, 'PUBREL', 2, 'kept', 60),
    ('c', 1, 't', {{now-86400000}}, 2, 'PUBREL', 2, 'x', -1),
    ('c', 2, 't', {{now-86400000}}, 3, 'PUBREL', 2, 'x', 2147483647),
    ('c', 3, 't', {{now-86400000}}, 4, 'PUBREL', 2, 'x', null),
    ('c', 4, 't', {{now-604860000}}, 5, 'PUBREL', 2, 'x', 2147483647);
