insert into device_session_ctx values
    ('onlyctx', 0, 41, 42),
    ('only shared', 0, -1, 0),
    ('no serial', 0, null, 3),
    ('no packet id', 0, 5, null),
    ('highest', 0, 70000, 65535);
