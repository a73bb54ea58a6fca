insert into device_session_ctx values
    ('', 0, 0, 1),
    ('}', 0, 0, 1),
    ('}x', 0, 1, 2),
    ('good', 0, 0, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('}', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('}x', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('}x', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x'),
    ('good', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x');
