insert into device_session_ctx values
    ('c', 0, 9007199254740990, 5);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 9007199254740989, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'x'),
    ('c', 9007199254740990, 't', {{now-1000}}, 5, 'PUBLISH', 1, 'x'),
    ('c', 9007199254740991, 't', {{now-1000}}, 6, 'PUBLISH', 1, 'x'),
    ('c', 9223372036854775807, 't', {{now-1000}}, 8, 'PUBLISH', 1, 'x'),
    ('c', -1, 't', {{now-1000}}, 9, 'PUBLISH', 1, 'x');
