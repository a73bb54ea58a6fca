insert into device_session_ctx values
    ('c', 0, 1, 2),
    ('good', 0, 0, 1);
