//! Folders whose names survive.

use std::{
    fs::{DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

/// Makes a folder and what is missing above it, with `mode` less the umask, durably: what is put into it later is not lost
/// with its name.
///
/// They are made from the top down, each with its name flushed before the next. The name of the one that was there already
/// is flushed too: the process that made it may have died before it had done that.
///
/// # Errors
///
/// What the file system says; `NotADirectory` or `AlreadyExists` if something else has one of the names.
pub fn create_folders(folder: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    let folder = folder.as_ref();
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
    if missing.is_empty() && !folder.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let there = missing.last().map_or(Some(folder), |made_first| made_first.parent());
    if let Some(there) = there.filter(|there| !there.as_os_str().is_empty()) {
        match flush_name(there) {
            // Whoever may not look into the folder above did not make this one.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            flushed => flushed?,
        }
    }
    for folder in missing.into_iter().rev() {
        match DirBuilder::new().mode(mode).create(folder) {
            // Another was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            made => made?,
        }
        flush_name(folder)?;
    }
    Ok(())
}

/// Flushes the folder that a name stands in.
fn flush_name(folder: &Path) -> io::Result<()> {
    match folder.parent() {
        Some(above) if above.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(above) => File::open(above)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn missing_folders_are_made_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        create_folders(at("a/b/c"), 0o700).unwrap();
        create_folders(at("a/b/c"), 0o700).unwrap();
        let mode = std::fs::metadata(at("a/b")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn what_is_no_folder_is_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        for wrong in ["file", "file/inner", "link", "link/inner"] {
            assert!(create_folders(at(wrong), 0o700).is_err(), "{wrong}");
        }
    }
}
