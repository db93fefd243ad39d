//! The bridge between agents and A2A on the owner's side: the `a2a` tool, and the way of outcomes into conversations.
//!
//! [`A2aTool`] is what the model calls. Everything it sends goes through the watch registry, which owns it from there on.
//! [`SessionDelivery`] is how the registry puts an outcome into a conversation, and [`overview()`] what people see of it.

mod arguments;
mod delivery;
mod listing;
mod overview;
mod told;
mod tool;
mod watch_lines;

pub use delivery::{SessionDelivery, Wake};
pub use overview::overview;
pub use tool::{A2aTool, A2aToolConfig};
pub use watch_lines::WatchLines;
