//! A directory that paths from outside cannot leave.
//!
//! Every path is resolved by the kernel beneath an open descriptor (`openat2` with `RESOLVE_BENEATH` and
//! `RESOLVE_NO_MAGICLINKS`), so there is no gap between a check and the use. Symbolic links work as long as they stay
//! inside. Linux 5.6 or later.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io::Read as _,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, ResolveFlags},
    io::Errno,
};

mod error;

pub use error::ConfineError;

use crate::atomic;

/// How often the kernel may answer "try again" because something was renamed while `..` was being resolved.
const RACE_ATTEMPTS: u32 = 32;

/// A directory descriptor under which every path is resolved.
///
/// Cheap to clone; clones share the descriptor. It keeps meaning the directory that was opened, also when that is
/// renamed or its path comes to mean another. All calls block: run them where blocking is fine.
#[derive(Debug, Clone)]
pub struct ConfinedDir {
    directory: Arc<OwnedFd>,
    path: PathBuf,
}

/// One entry of [`ConfinedDir::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinedEntry {
    /// The name inside its directory.
    pub name: OsString,
    /// What the name stands for; links are not followed.
    pub kind: EntryKind,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, wherever it points.
    Link,
    /// A FIFO, socket or device; none of these can be opened here.
    Other,
}

/// The exclusive lock on a directory, given back when dropped and when the process ends.
#[derive(Debug)]
pub struct DirLock {
    _descriptor: OwnedFd,
}

impl ConfinedDir {
    /// Opens the directory at `path`, which is trusted and may be anything the process can reach.
    ///
    /// # Errors
    ///
    /// [`ConfineError::NotFound`], [`ConfineError::NotADirectory`] or [`ConfineError::Io`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ConfineError> {
        let path = path.into();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match fs::open(&path, flags, Mode::empty()) {
            Ok(directory) => Ok(Self { directory: Arc::new(directory), path }),
            Err(errno) => Err(ConfineError::from_errno(errno, path)),
        }
    }

    /// The path this was opened with, for messages and for programs started in it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory inside as a confinement of its own: links that leave it are refused, even when they stay
    /// inside this one.
    ///
    /// # Errors
    ///
    /// [`ConfineError`], as for every lookup.
    pub fn open_dir(&self, path: impl AsRef<Path>) -> Result<Self, ConfineError> {
        let path = path.as_ref();
        let directory = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        Ok(Self { directory: Arc::new(directory), path: self.path.join(path) })
    }

    /// Opens a regular file for reading. It never blocks on a FIFO.
    ///
    /// # Errors
    ///
    /// [`ConfineError::NotAFile`] if the path leads to anything but a regular file, else as for every lookup.
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, ConfineError> {
        let path = path.as_ref();
        // Without blocking: opening a FIFO would wait for its writer.
        let descriptor =
            self.resolve(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, 0)?;
        let stat = fs::fstat(&descriptor).map_err(|errno| ConfineError::from_errno(errno, path))?;
        if FileType::from_raw_mode(stat.st_mode).is_file() {
            Ok(File::from(descriptor))
        } else {
            Err(ConfineError::NotAFile { path: path.to_owned() })
        }
    }

    /// Creates a file that did not exist, durably: a crash at any moment leaves the whole of it or nothing but a temporary
    /// file. A link in its place, even a dangling one, counts as existing. `mode` holds less the umask.
    ///
    /// # Errors
    ///
    /// [`ConfineError::AlreadyExists`], else as for [`ConfinedDir::write_atomic`].
    pub fn create_new(
        &self,
        path: impl AsRef<Path>,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), ConfineError> {
        let path = path.as_ref();
        let (directory, name) = self.resolve_parent(path)?;
        atomic::create_in(directory.as_fd(), name, bytes, mode)
            .map_err(|error| ConfineError::from_io(error, path))
    }

    /// Creates a directory and those above it, as far as they are missing, durably. The name of the one that was there
    /// already is flushed too: the process that made it may have died before it had done that.
    ///
    /// # Errors
    ///
    /// [`ConfineError::NotADirectory`] if something else has a name on the way, else as for every lookup.
    pub fn create_dir_all(&self, path: impl AsRef<Path>) -> Result<(), ConfineError> {
        let path = path.as_ref();
        let mut above = PathBuf::from(".");
        // What holds the last name that was there.
        let mut unsure = None;
        for component in path.components() {
            if matches!(component, Component::RootDir | Component::Prefix(_)) {
                return Err(ConfineError::Outside { path: path.to_owned() });
            }
            let here = above.join(component);
            // What stands in the way, in the words of the caller.
            let about = |error: ConfineError| error.about(here.strip_prefix(".").unwrap_or(&here));
            match self.resolve(&here, OFlags::PATH | OFlags::DIRECTORY, 0) {
                Ok(_) => unsure = Some(above),
                Err(ConfineError::NotFound { .. }) => {
                    if let Some(unsure) = unsure.take() {
                        self.flush(&unsure)?;
                    }
                    let parent = self.resolve(&above, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
                    make_dir(&parent, component.as_os_str())
                        .map_err(|errno| ConfineError::from_errno(errno, path))?;
                    // Proves that what has the name now is a directory inside, not a dangling link.
                    self.resolve(&here, OFlags::PATH | OFlags::DIRECTORY, 0).map_err(about)?;
                }
                Err(error) => return Err(about(error)),
            }
            above = here;
        }
        unsure.map_or(Ok(()), |unsure| self.flush(&unsure))
    }

    /// Reads a whole regular file of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`ConfineError::TooLarge`] if there is more, also when the file grows meanwhile; else as for
    /// [`ConfinedDir::open_file`].
    pub fn read_to_limit(
        &self,
        path: impl AsRef<Path>,
        limit: u64,
    ) -> Result<Vec<u8>, ConfineError> {
        let path = path.as_ref();
        let file = self.open_file(path)?;
        let io = |source| ConfineError::Io { path: path.to_owned(), source };
        let size = file.metadata().map_err(io)?.len();
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or(0));
        if size <= limit {
            file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
        }
        if size > limit || bytes.len() as u64 > limit {
            return Err(ConfineError::TooLarge { path: path.to_owned(), limit });
        }
        Ok(bytes)
    }

    /// Replaces a file durably; see [`crate::write_atomic`]. A link with that name is itself replaced.
    ///
    /// # Errors
    ///
    /// [`ConfineError::NotAFile`] if a directory has the name, [`ConfineError::NotFound`] if the directory above is
    /// missing, else as for every lookup.
    pub fn write_atomic(
        &self,
        path: impl AsRef<Path>,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), ConfineError> {
        let path = path.as_ref();
        let (directory, name) = self.resolve_parent(path)?;
        atomic::replace_in(directory.as_fd(), name, bytes, mode)
            .map_err(|error| ConfineError::from_io(error, path))
    }

    /// Removes what writing left behind in a directory; see [`crate::sweep_temp_files`].
    ///
    /// # Errors
    ///
    /// [`ConfineError::NotADirectory`], else as for every lookup.
    pub fn sweep_temp_files(&self, path: impl AsRef<Path>) -> Result<usize, ConfineError> {
        let path = path.as_ref();
        let directory = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        atomic::sweep_in(directory.as_fd()).map_err(|error| ConfineError::from_io(error, path))
    }

    /// Removes a file, a link (not its target) or anything else that is not a directory.
    ///
    /// # Errors
    ///
    /// [`ConfineError::NotAFile`] for a directory, else as for every lookup.
    pub fn remove_file(&self, path: impl AsRef<Path>) -> Result<(), ConfineError> {
        let path = path.as_ref();
        let (directory, name) = self.resolve_parent(path)?;
        fs::unlinkat(&directory, name, AtFlags::empty())
            .map_err(|errno| ConfineError::from_errno(errno, path))
    }

    /// Gives a file, a link or a directory another name inside, durably; what has that name is replaced.
    ///
    /// # Errors
    ///
    /// [`ConfineError`], as for every lookup, about `from` when it is missing.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), ConfineError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let (old, old_name) = self.resolve_parent(from)?;
        let (new, new_name) = self.resolve_parent(to)?;
        fs::renameat(&old, old_name, &new, new_name)
            .and_then(|()| fs::fsync(&new))
            .and_then(|()| fs::fsync(&old))
            .map_err(|errno| ConfineError::from_errno(errno, from))
    }

    /// Lists a directory by name, without `.` and `..`. The path `.` is this directory itself.
    ///
    /// # Errors
    ///
    /// [`ConfineError::NotADirectory`], else as for every lookup.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<ConfinedEntry>, ConfineError> {
        let path = path.as_ref();
        let directory = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        let mut entries =
            read_entries(&directory).map_err(|errno| ConfineError::from_errno(errno, path))?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Says what is at a path, links followed as far as they stay inside. Opens nothing.
    ///
    /// # Errors
    ///
    /// [`ConfineError`], as for every lookup.
    pub fn metadata(&self, path: impl AsRef<Path>) -> Result<Metadata, ConfineError> {
        let path = path.as_ref();
        let descriptor = self.resolve(path, OFlags::PATH, 0)?;
        File::from(descriptor)
            .metadata()
            .map_err(|source| ConfineError::Io { path: path.to_owned(), source })
    }

    /// Makes the names in this directory durable: files created in it, once synced themselves, survive a crash.
    ///
    /// # Errors
    ///
    /// If the device fails.
    pub fn sync(&self) -> std::io::Result<()> {
        Ok(fs::fsync(&self.directory)?)
    }

    /// Takes the exclusive lock on this directory, or returns `None` while somebody else holds it, in this process or
    /// another. It writes nothing into the directory.
    ///
    /// # Errors
    ///
    /// If the file system has no locks.
    pub fn try_lock(&self) -> std::io::Result<Option<DirLock>> {
        // A lock belongs to an open descriptor and its copies, so each takes a fresh one.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = fs::openat(&self.directory, ".", flags, Mode::empty())?;
        match fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(DirLock { _descriptor: descriptor })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn resolve(&self, path: &Path, flags: OFlags, mode: u32) -> Result<OwnedFd, ConfineError> {
        let flags = flags | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut last = Errno::AGAIN;
        for _ in 0..RACE_ATTEMPTS {
            match fs::openat2(&self.directory, path, flags, Mode::from_raw_mode(mode), within) {
                Ok(descriptor) => return Ok(descriptor),
                Err(errno @ (Errno::AGAIN | Errno::INTR)) => last = errno,
                Err(errno) => return Err(ConfineError::from_errno(errno, path)),
            }
        }
        Err(ConfineError::from_errno(last, path))
    }

    /// Makes the names in a directory durable, unless it may not be looked into: then none of them was made from here.
    fn flush(&self, path: &Path) -> Result<(), ConfineError> {
        match self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY, 0) {
            Ok(directory) => {
                fs::fsync(directory).map_err(|errno| ConfineError::from_errno(errno, path))
            }
            Err(ConfineError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the directory that holds the last name of `path`.
    fn resolve_parent<'p>(&self, path: &'p Path) -> Result<(OwnedFd, &'p OsStr), ConfineError> {
        let name =
            path.file_name().ok_or_else(|| ConfineError::NotAFile { path: path.to_owned() })?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        };
        match self.resolve(parent, OFlags::RDONLY | OFlags::DIRECTORY, 0) {
            Ok(directory) => Ok((directory, name)),
            Err(error) => Err(error.about(path)),
        }
    }
}

/// Creates a directory and syncs the one above; that another was quicker is fine.
fn make_dir(parent: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) => fs::fsync(parent),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn read_entries(directory: &OwnedFd) -> Result<Vec<ConfinedEntry>, Errno> {
    let mut entries = Vec::new();
    for entry in fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            kind => kind,
        };
        let name = OsStr::from_bytes(name.to_bytes()).to_owned();
        entries.push(ConfinedEntry { name, kind: EntryKind::from(kind) });
    }
    Ok(entries)
}

impl From<FileType> for EntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests;
