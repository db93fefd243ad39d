//! The shipped `volcanic` against remote agents that mean harm: what it prints, how it ends, how much memory it takes, and
//! what it leaves on disk.
//!
//! Every row of the tables runs the program against a friendly agent and against one with a single fault, and holds it
//! to the same bounds. They are a binary of their own because they are heavy: in `it` they would slow every other test.

#[cfg(test)]
mod attachments;
#[cfg(test)]
mod cards;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod encrypted;
#[cfg(test)]
mod millions;
#[cfg(test)]
mod names;
#[cfg(test)]
mod results;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod table;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod wire;
