//! What can go wrong with a confined path.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

/// An error of a path under a [`ConfinedDir`](crate::ConfinedDir). Every one names the path as it was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// Nothing has this path.
    #[error("`{}` does not exist", path.display())]
    NotFound {
        /// The path asked for.
        path: PathBuf,
    },
    /// Something has this path already.
    #[error("`{}` already exists", path.display())]
    AlreadyExists {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path leaves the directory: it is absolute, climbs out with `..`, or goes through a link that does. Loops of
    /// links and the magic links of `/proc` count too.
    #[error("`{}` leads outside the directory", path.display())]
    Outside {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path leads to a directory, FIFO, socket or device where a regular file is needed.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path, or a part of it, is not a directory where one is needed.
    #[error("`{}` is not a directory", path.display())]
    NotADirectory {
        /// The path asked for.
        path: PathBuf,
    },
    /// The file holds more than the caller takes.
    #[error("`{}` is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The path asked for.
        path: PathBuf,
        /// The largest size taken, in bytes.
        limit: u64,
    },
    /// The system refused for another reason.
    #[error("failed to access `{}`", path.display())]
    Io {
        /// The path asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl ConfineError {
    /// The path as it was given.
    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path }
            | Self::AlreadyExists { path }
            | Self::Outside { path }
            | Self::NotAFile { path }
            | Self::NotADirectory { path }
            | Self::TooLarge { path, limit: _ }
            | Self::Io { path, source: _ } => path,
        }
    }

    pub(super) fn from_errno(errno: Errno, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        match errno {
            Errno::NOENT => Self::NotFound { path },
            Errno::EXIST | Errno::NOTEMPTY => Self::AlreadyExists { path },
            Errno::XDEV | Errno::LOOP => Self::Outside { path },
            // A socket, or a device without a driver, cannot be opened at all.
            Errno::ISDIR | Errno::NXIO | Errno::NODEV => Self::NotAFile { path },
            Errno::NOTDIR => Self::NotADirectory { path },
            errno => Self::Io { path, source: errno.into() },
        }
    }

    pub(super) fn from_io(error: io::Error, path: &Path) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => Self::from_errno(errno, path),
            None => Self::Io { path: path.to_owned(), source: error },
        }
    }

    /// The same error, told about the path the caller gave instead of a part of it.
    pub(super) fn about(self, whole: &Path) -> Self {
        let path = whole.to_owned();
        match self {
            Self::NotFound { path: _ } => Self::NotFound { path },
            Self::AlreadyExists { path: _ } => Self::AlreadyExists { path },
            Self::Outside { path: _ } => Self::Outside { path },
            Self::NotAFile { path: _ } => Self::NotAFile { path },
            Self::NotADirectory { path: _ } => Self::NotADirectory { path },
            Self::TooLarge { path: _, limit } => Self::TooLarge { path, limit },
            Self::Io { path: _, source } => Self::Io { path, source },
        }
    }
}
