insert into device_session_ctx values
    ('c', 0, 3, 4);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x', null),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x', 0),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x', null),
    ('c', 3, 't', {{now-604860000}}, 4, 'PUBLISH', 1, 'x', 0);
