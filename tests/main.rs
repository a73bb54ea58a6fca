//! Integration tests: the real binary against real PostgreSQL and Redis servers.
