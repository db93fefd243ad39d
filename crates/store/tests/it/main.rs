//! The store against the contracts of the traits that it implements.

#[cfg(test)]
mod conversation;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod grouping;
#[cfg(test)]
mod held;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod telegram;
#[cfg(test)]
mod watches;
