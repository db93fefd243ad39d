//! Several crates together, over real sockets and on the real store: an assistant, and the agents it hands work to.
//!
//! Pauses of the watches are a hundredth of the real ones (`WatchConfig::scaled`); nothing here depends on how long
//! they are.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod assistant;
#[cfg(test)]
mod delivering;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_names;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod mortal;
#[cfg(test)]
mod parity;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod pushing;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod restarting;
#[cfg(test)]
mod results;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod watch_parity;
#[cfg(test)]
mod watching;
