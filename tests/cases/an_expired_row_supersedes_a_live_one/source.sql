insert into device_session_ctx values
    ('c', 0, 9, 4);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('c', 9, 't', {{now-86400000}}, 4, 'PUBLISH', 1, 'x', 60),
    ('c', 5, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'x', null),
    ('c', 6, 't', {{now-1000}}, 7, 'PUBLISH', 1, 'x', null),
    ('c', 8, 't', {{now-1000}}, 7, 'PUBLISH', 1, 'x', -1);
