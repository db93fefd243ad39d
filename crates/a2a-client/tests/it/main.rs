//! Calls of a remote agent over real loopback sockets, and in memory where time must stand still.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod cards;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod http_json;
#[cfg(test)]
mod kept_cards;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod v03;
