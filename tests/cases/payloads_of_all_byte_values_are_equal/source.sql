insert into device_session_ctx values
    ('c', 0, 9, 10);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, '\x00'),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, '\xff'),
    ('c', 3, 't', {{now-1000}}, 4, 'PUBLISH', 1, '\x7b7d'),
    ('c', 4, 't', {{now-1000}}, 5, 'PUBLISH', 1, '\x0d0a'),
    ('c', 5, 't', {{now-1000}}, 6, 'PUBLISH', 1, '\x5c'),
    ('c', 6, 't', {{now-1000}}, 7, 'PUBLISH', 1, '\x5c783030'),
    ('c', 7, 't', {{now-1000}}, 8, 'PUBLISH', 1, '\x5c303030'),
    ('c', 8, 't', {{now-1000}}, 9, 'PUBLISH', 1, '\xefbbbf'),
    ('c', 9, 't', {{now-1000}}, 10, 'PUBLISH', 1, '\x20');
