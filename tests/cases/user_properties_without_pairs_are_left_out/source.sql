insert into device_session_ctx values
    ('c', 0, 5, 6);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, user_properties) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 2, 'x', '{"props":[]}'),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 2, 'x', ' { "props" : [ ] } '),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 2, 'x', ''),
    ('c', 3, 't', {{now-1000}}, 4, 'PUBLISH', 2, 'x', ' '),
    ('c', 4, 't', {{now-1000}}, 5, 'PUBLISH', 2, 'x', e'\t\n '),
    ('c', 5, 't', {{now-1000}}, 6, 'PUBLISH', 2, 'x', null);
