//! What the registry promises, shown on an agent in memory and in paused time.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod answering;
#[cfg(test)]
mod asking;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod files;
#[cfg(test)]
mod importing;
#[cfg(test)]
mod mending;
#[cfg(test)]
mod pushing;
#[cfg(test)]
mod restarting;
#[cfg(test)]
mod rulings;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod streaming;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod twins;
#[cfg(test)]
mod unclear;
#[cfg(test)]
mod view;
#[cfg(test)]
mod watching;
#[cfg(test)]
mod world;
