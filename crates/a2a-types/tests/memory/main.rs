//! What is allocated while something is read. A binary of its own, since it counts all that is.

#[cfg(test)]
mod reading;
