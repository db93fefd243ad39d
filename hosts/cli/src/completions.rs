//! `volcanic completions`: what makes a shell complete these commands.

use anyhow::Result;
use clap::CommandFactory as _;

use crate::{
    args::{Cli, CompletionsArgs},
    exit::Exit,
    output::write_line,
};

/// Prints the script of a shell. It needs no settings, so that it works before there are any.
///
/// # Errors
/// When nobody reads.
pub fn completions(args: &CompletionsArgs) -> Result<Exit> {
    // Into memory first: the generator would panic where nobody reads.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "volcanic", &mut script);
    write_line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Done)
}
