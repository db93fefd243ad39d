//! The tool and the delivery, with an agent in memory and in paused time.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod delivering;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod talking;
#[cfg(test)]
mod world;
