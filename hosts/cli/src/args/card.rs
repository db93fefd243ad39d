//! `volcanic card`.

use clap::Args;

use super::AgentArgs;

/// `volcanic card`.
#[derive(Debug, Args)]
pub struct CardArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: AgentArgs,
    /// Show the card for authenticated callers; the agent is asked for it with the key.
    #[arg(long)]
    pub extended: bool,
    /// Say all that is wrong with the card, by the letter of the specification, in place of the card.
    #[arg(long)]
    pub validate: bool,
}
