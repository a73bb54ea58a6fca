alter table device_publish_msg alter column topic drop not null, alter column time drop not null, alter column qos drop not null, alter column payload drop not null;
insert into device_session_ctx values
    ('c', 0, 20, 21);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, user_properties) values
    ('c', 1, 't', {{now-1000}}, 2, 'publish', 1, 'x', null),
    ('c', 2, 't', {{now-1000}}, 3, '', 1, 'x', null),
    ('c', 3, 't', {{now-1000}}, 4, 'PUBACK', 1, 'x', null),
    ('c', 4, 't', {{now-1000}}, 5, 'PUBLISH', 3, 'x', null),
    ('c', 5, 't', {{now-1000}}, 6, 'PUBLISH', -1, 'x', null),
    ('c', 6, 't', {{now-1000}}, 7, 'PUBLISH', null, 'x', null),
    ('c', 7, null, {{now-1000}}, 8, 'PUBLISH', 1, 'x', null),
    ('c', 8, 't', {{now-1000}}, 9, 'PUBLISH', 1, null, null),
    ('c', 9, 't', null, 10, 'PUBLISH', 1, 'x', null),
    ('c', 10, 't', {{now+31708800000}}, 11, 'PUBLISH', 1, 'x', null),
    ('c', 11, 't', {{now-1000}}, 0, 'PUBLISH', 1, 'x', null),
    ('c', 12, 't', {{now-1000}}, 65536, 'PUBLISH', 1, 'x', null),
    ('c', 13, 't', {{now-1000}}, -1, 'PUBLISH', 1, 'x', null),
    ('c', 14, 't', {{now-1000}}, null, 'PUBLISH', 1, 'x', null),
    ('c', 15, 't', {{now-1000}}, 16, 'PUBLISH', 1, 'x', 'x'),
    ('c', 16, 't', {{now-1000}}, 17, 'PUBLISH', 1, '12345', null),
    ('c', -2, 't', {{now-1000}}, 18, 'PUBLISH', 1, 'x', null),
    ('c', 20, 't', {{now-1000}}, 21, 'PUBLISH', 1, '1234', null);
