//! Text files that a person names: regular, of a bounded size, and read without waiting for anybody.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
/// Besides those of the file system: [`io::ErrorKind::InvalidInput`] for what is no regular file (a device, a FIFO, a
/// directory) and [`io::ErrorKind::FileTooLarge`] for a larger file, each with a text that says so.
pub fn read_text_to_limit(path: impl AsRef<Path>, limit: u64) -> io::Result<String> {
    let path = path.as_ref();
    // Looked at before it is opened: opening a FIFO would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > limit {
        let text = format!("it is larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(text)
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
    fn devices_and_directories_are_refused_at_once() {
        for path in ["/dev/zero", "/"] {
            let error = read_text_to_limit(path, 5).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
    }
}
