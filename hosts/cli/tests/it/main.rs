//! The shipped `volcanic` binary over real sockets: what it prints, how it ends, what it leaves on disk.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod answering;
#[cfg(test)]
mod cards;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod encrypted;
#[cfg(test)]
mod exits;
#[cfg(test)]
mod json;
#[cfg(test)]
mod keyed_agent;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod model_server;
#[cfg(test)]
mod models;
#[cfg(test)]
mod odd_agent;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod pty;
#[cfg(test)]
mod reaching;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod storing;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod tour;
#[cfg(test)]
mod unsaved;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod watching;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod world;
