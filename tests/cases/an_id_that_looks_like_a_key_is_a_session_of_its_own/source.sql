insert into device_session_ctx values
    ('a', 0, 0, 1),
    ('a}_messages', 0, 1, 2),
    ('a}_messages_1', 0, 2, 3),
    ('a}_last_packet_id', 0, 3, 4),
    ('{a}_messages', 0, 4, 5),
    ('{a}_messages_1', 0, 5, 6);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('a', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'a'),
    ('a}_messages', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'a}_messages'),
    ('a}_messages_1', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'a}_messages_1'),
    ('a}_last_packet_id', 3, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'a}_last_packet_id'),
    ('{a}_messages', 4, 't', {{now-1000}}, 5, 'PUBLISH', 1, '{a}_messages'),
    ('{a}_messages_1', 5, 't', {{now-1000}}, 6, 'PUBLISH', 1, '{a}_messages_1');
