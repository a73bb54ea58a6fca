insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('ss_grp_home/+/temp', 0, 'home/1/temp', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('ss_grp_home/+/temp', 1, 'home/2/temp', {{now-1000}}, 2, 'PUBLISH', 1, 'x');
