//! Where the bot keeps its things in the home folder. The command line looks there, too.

/// The folder of the bot's state.
pub const BOT_STATE: &str = "telegram";

/// The folder of the chats' workspaces, one per person and named by their id.
pub const BOT_WORKSPACES: &str = "telegram-workspaces";

/// The database in a folder of state.
pub const DATABASE: &str = "state.db";
