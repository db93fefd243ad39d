//! What this crate promises to those who use it.

#[cfg(test)]
mod cards;
#[cfg(test)]
mod corpus;
mod large;
#[cfg(test)]
mod meaning;
