//! The Lua scripts against a real Redis.
