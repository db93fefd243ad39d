//! The Telegram host.
