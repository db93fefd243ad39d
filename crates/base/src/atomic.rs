//! Files that hold their old or their new content, never a part of either, whenever the machine stops.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd, BorrowedFd},
    path::Path,
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags},
    io::Errno,
};

/// Marks a file as one of ours on its way to its name.
const TEMP_SUFFIX: &str = ".volcanic-tmp";

/// How often another temporary name is tried. Collisions are left-overs of a crashed process with the same id, which
/// in a container is every one of them.
const NAME_ATTEMPTS: u32 = 10_000;

static NEXT_TEMP: AtomicU64 = AtomicU64::new(0);

/// Replaces the file at `path` with `bytes`, durably: a crash at any moment leaves the old content or the new.
///
/// The bytes go to a temporary file in the same directory, are synced, renamed over `path`, and the directory is
/// synced. `mode` holds for the new file, less the umask. If `path` is a symbolic link, the link itself is replaced.
///
/// # Errors
///
/// What the file system says; `InvalidInput` if `path` names no file. The temporary file is removed again. An error of
/// the last sync leaves the new content in place, possibly not yet durable.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> io::Result<()> {
    let path = path.as_ref();
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    replace_in(File::open(directory)?.as_fd(), name, bytes, mode)
}

/// Removes what [`write_atomic`] left behind in `dir` when its process died, and returns how many files that was.
///
/// A temporary file that is still being written is locked by its writer and stays.
///
/// # Errors
///
/// If the directory cannot be read. A single file that resists is passed over.
pub fn sweep_temp_files(dir: impl AsRef<Path>) -> io::Result<usize> {
    sweep_in(File::open(dir)?.as_fd())
}

/// [`sweep_temp_files`] with the directory already open.
pub(crate) fn sweep_in(directory: BorrowedFd<'_>) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_candidate = matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown)
            && is_temp_name(name.to_bytes());
        if is_candidate && remove_if_stale(directory, name) {
            removed += 1;
        }
    }
    Ok(removed)
}

/// [`write_atomic`] with the directory already open.
pub(crate) fn replace_in(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
) -> io::Result<()> {
    write_in(directory, name, bytes, mode, |temp| fs::renameat(directory, temp, directory, name))
}

/// Like [`replace_in`], but a name that is taken keeps its content, and the error says so. After an error of the last sync
/// the name is gone again: whoever hears that there is no such file is not to find one.
pub(crate) fn create_in(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
) -> io::Result<()> {
    let mut is_placed = false;
    let created = write_in(directory, name, bytes, mode, |temp| {
        place_new(directory, temp, name)?;
        is_placed = true;
        Ok(())
    });
    if created.is_err() && is_placed {
        // The first error is the one worth telling.
        let _ = fs::unlinkat(directory, name, AtFlags::empty());
    }
    created
}

/// Gives a temporary file a name that is free.
fn place_new(directory: BorrowedFd<'_>, temp: &OsStr, name: &OsStr) -> Result<(), Errno> {
    match fs::renameat_with(directory, temp, directory, name, RenameFlags::NOREPLACE) {
        // Not every file system can; a second name works on most of those.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::linkat(directory, temp, directory, name, AtFlags::empty())?;
            fs::unlinkat(directory, temp, AtFlags::empty())
        }
        end => end,
    }
}

/// Writes a temporary file whole and lets `place` give it its name.
fn write_in(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
    place: impl FnOnce(&OsStr) -> Result<(), Errno>,
) -> io::Result<()> {
    let (temp_name, mut temp) = create_temp(directory, name, mode)?;
    let placed =
        temp.write_all(bytes).and_then(|()| temp.sync_all()).and_then(|()| Ok(place(&temp_name)?));
    if let Err(error) = placed {
        // The first error is the one worth telling; a temp that stays is swept at the next start.
        let _ = fs::unlinkat(directory, &temp_name, AtFlags::empty());
        return Err(error);
    }
    Ok(fs::fsync(directory)?)
}

/// Creates a temporary file that is locked, so that no sweep takes it for a left-over.
fn create_temp(directory: BorrowedFd<'_>, name: &OsStr, mode: u32) -> io::Result<(OsString, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..NAME_ATTEMPTS {
        let temp_name = temp_name(name, NEXT_TEMP.fetch_add(1, Ordering::Relaxed));
        let descriptor = match fs::openat(directory, &temp_name, flags, Mode::from_raw_mode(mode)) {
            Ok(descriptor) => descriptor,
            Err(Errno::EXIST) => continue,
            Err(error) => return Err(error.into()),
        };
        // A file system without locks still gets its atomic write; only the sweep is blind there.
        let _ = fs::flock(&descriptor, FlockOperation::LockExclusive);
        // A sweep may have come between creation and lock.
        if fs::fstat(&descriptor)?.st_nlink > 0 {
            return Ok((temp_name, File::from(descriptor)));
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every temporary name is taken"))
}

/// `.<name>.<process>-<number><suffix>`, with a long name shortened to stay within what file systems take.
fn temp_name(name: &OsStr, number: u64) -> OsString {
    let mut temp = OsString::from(".");
    if name.len() <= 180 {
        temp.push(name);
    }
    temp.push(format!(".{}-{number}{TEMP_SUFFIX}", process::id()));
    temp
}

fn is_temp_name(name: &[u8]) -> bool {
    let Some(stem) = name.strip_suffix(TEMP_SUFFIX.as_bytes()) else { return false };
    let Some(dot) = stem.iter().rposition(|byte| *byte == b'.') else { return false };
    stem.starts_with(b".")
        && stem[dot + 1..].iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
        && stem[dot + 1..].contains(&b'-')
}

fn remove_if_stale(directory: BorrowedFd<'_>, name: &std::ffi::CStr) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(descriptor) = fs::openat(directory, name, flags, Mode::empty()) else { return false };
    let is_file =
        fs::fstat(&descriptor).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
    is_file
        && fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive).is_ok()
        && fs::unlinkat(directory, name, AtFlags::empty()).is_ok()
}

#[cfg(test)]
mod tests;
