insert into device_session_ctx values
    ('{', 0, 0, 1),
    ('{}', 0, 0, 1),
    ('{a}', 0, 0, 1),
    ('a}b', 0, 0, 1),
    ('a{b', 0, 0, 1),
    ('a', 0, 0, 1),
    ('{{', 0, 0, 1),
    ('a}', 0, 0, 1),
    ('x{}y', 0, 0, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('{', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '{'),
    ('{}', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '{}'),
    ('{a}', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '{a}'),
    ('a}b', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'a}b'),
    ('a{b', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'a{b'),
    ('a', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'a'),
    ('{{', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '{{'),
    ('a}', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'a}'),
    ('x{}y', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x{}y');
