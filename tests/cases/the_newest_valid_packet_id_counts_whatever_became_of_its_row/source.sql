insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('expired', 5, 't', {{now-691200000}}, 6, 'PUBLISH', 1, 'x', null),
    ('expired', 4, 't', {{now-1000}}, 5, 'PUBLISH', 1, 'x', null),
    ('negative', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x', -1),
    ('null on top', 3, 't', {{now-1000}}, null, 'PUBLISH', 1, 'x', null),
    ('null on top', 2, 't', {{now-1000}}, 77, 'PUBLISH', 1, 'x', null),
    ('null on top', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x', null),
    ('broken', 3, 't', {{now-1000}}, 50, 'PUBLISH', 9, 'x', null),
    ('broken', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x', null),
    ('zero', 3, 't', {{now-1000}}, 0, 'PUBLISH', 1, 'x', null),
    ('zero', 2, 't', {{now-1000}}, 65536, 'PUBLISH', 1, 'x', null),
    ('zero', 1, 't', {{now-1000}}, -5, 'PUBLISH', 1, 'x', null),
    ('zero', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x', null);
