//! What this crate promises to those who use it.

#[cfg(test)]
mod cards;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod large;
#[cfg(test)]
mod meaning;
