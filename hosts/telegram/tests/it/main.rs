//! The bot against a strict Bot API: the shipped binary where it matters, its parts where faults have to be timed.

#[cfg(test)]
mod bot;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod delegation;
#[cfg(test)]
mod held;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod receive;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod results;
#[cfg(test)]
mod settings;
