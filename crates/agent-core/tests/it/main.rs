//! Tests of sessions on the memory store and scripted models.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod panics;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod store_trouble;
#[cfg(test)]
mod tools;
