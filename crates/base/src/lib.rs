//! Foundations every other crate stands on: time, chance, backoff, secrets, atomic files, confined directories.
//!
//! Nothing here knows agents or A2A. Time and chance are values that are passed in ([`Clock`], [`Chance`]), so tests
//! decide both; files are written so that a crash leaves the old or the new content ([`write_atomic`]); and paths that
//! come from outside are resolved by the kernel under a directory descriptor ([`ConfinedDir`]).

mod atomic;
mod backoff;
mod causes;
mod chance;
mod clock;
mod confined;
mod folders;
mod named_file;
mod secret;

pub use atomic::{sweep_temp_files, write_atomic};
pub use backoff::Backoff;
pub use causes::with_causes;
pub use chance::Chance;
pub use clock::{Clock, ManualClock, SystemClock};
pub use confined::{ConfineError, ConfinedDir, ConfinedEntry, DirLock, EntryKind};
pub use folders::create_folders;
pub use named_file::{read_text_to_limit, read_to_limit};
pub use secret::Secret;
