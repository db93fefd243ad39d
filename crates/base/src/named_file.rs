//! Files that a person names: regular, of a bounded size, and read without waiting for anybody.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
/// Those of [`read_to_limit`], and [`io::ErrorKind::InvalidData`] for what is no UTF-8.
pub fn read_text_to_limit(path: impl AsRef<Path>, limit: u64) -> io::Result<String> {
    String::from_utf8(read_to_limit(path, limit)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// Besides those of the file system: [`io::ErrorKind::InvalidInput`] for what is no regular file (a device, a FIFO, a
/// directory) and [`io::ErrorKind::FileTooLarge`] for a larger file, each with a text that says so.
pub fn read_to_limit(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
    // Opening a device can do things of its own, so it is looked at before. What is in its place by then is looked at
    // again, and opened so that a FIFO without a writer does not wait for one.
    if !std::fs::metadata(path)?.is_file() {
        return Err(no_file());
    }
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(no_file());
    }
    let mut content = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        let text = format!("it is larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_up_to_the_limit_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_text_to_limit(&path, 5).unwrap(), "12345");
        let error = read_text_to_limit(&path, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn devices_directories_and_fifos_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        for path in [Path::new("/dev/zero"), Path::new("/"), &fifo] {
            let error = read_text_to_limit(path, 5).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
    }

    #[test]
    fn only_a_text_has_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        std::fs::write(&path, [0xe4, 0xf6]).unwrap();
        assert_eq!(read_to_limit(&path, 5).unwrap(), [0xe4, 0xf6]);
        let error = read_text_to_limit(&path, 5).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
