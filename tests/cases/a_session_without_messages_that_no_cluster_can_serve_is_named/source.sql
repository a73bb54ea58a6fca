insert into device_session_ctx values
    ('}alone', 0, 3, 4),
    ('good', 0, 0, 1);
