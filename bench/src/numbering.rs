//! What the watches of the bench are called. Both sides count them, so neither has to tell the other.

/// The task of a watch: a name as long as most agents' are.
pub(crate) fn task(number: usize) -> String {
    format!("{number:08x}-7a5c-4b1e-9d2f-0242ac120002")
}

/// The watch itself.
pub(crate) fn watch(number: usize) -> String {
    format!("{number:032x}")
}

/// What its pushes carry.
pub(crate) fn token(number: usize) -> String {
    format!("push-token-{number:032}")
}
