insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 3, 't', {{now-1000}}, null, 'PUBLISH', 1, 'x'),
    ('c', 2, 't', {{now-1000}}, 0, 'PUBLISH', 1, 'x');
