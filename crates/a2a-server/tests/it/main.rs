//! The serving half over real sockets.

#[cfg(test)]
mod card;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod files;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod pushes;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod webhook;
