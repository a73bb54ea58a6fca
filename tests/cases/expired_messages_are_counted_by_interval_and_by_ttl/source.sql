insert into device_session_ctx values
    ('c', 0, 4, 5),
    ('gone', 0, 1, 2);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('c', 0, 't', {{now-60000}}, 1, 'PUBLISH', 1, 'x', 30),
    ('c', 1, 't', {{now-604860000}}, 2, 'PUBLISH', 1, 'x', null),
    ('c', 2, 't', {{now-604860000}}, 3, 'PUBLISH', 1, 'x', 31536000),
    ('c', 3, 't', {{now-7200000}}, 4, 'PUBLISH', 1, 'x', 3600),
    ('c', 4, 't', {{now-1000}}, 5, 'PUBLISH', 1, 'x', null),
    ('gone', 0, 't', {{now-604860000}}, 1, 'PUBLISH', 1, 'x', null),
    ('gone', 1, 't', {{now-60000}}, 2, 'PUBLISH', 1, 'x', 1);
