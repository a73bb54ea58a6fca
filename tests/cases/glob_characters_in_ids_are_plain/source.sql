insert into device_session_ctx values
    ('a*', 0, 0, 1),
    ('ab', 0, 0, 1),
    ('[x]', 0, 0, 1),
    ('x', 0, 0, 1),
    ('a?b', 0, 0, 1),
    (e'a\\b', 0, 0, 1),
    (e'\\', 0, 0, 1),
    ('*', 0, 0, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('a*', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'a*'),
    ('ab', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'ab'),
    ('[x]', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '[x]'),
    ('x', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('a?b', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'a?b'),
    (e'a\\b', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '\x615c62'),
    (e'\\', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '\x5c'),
    ('*', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '*');
