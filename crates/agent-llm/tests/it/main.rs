//! The chat completions adapter against a strict server on a real socket.

#[cfg(test)]
mod failures;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod server;
