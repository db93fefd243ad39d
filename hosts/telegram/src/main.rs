//! The Telegram bot.
fn main() {}
