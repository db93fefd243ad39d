//! Columns to values and back.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::Type;

/// Reads a time.
pub(crate) fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    parsed(row, column)
}

/// Reads a time that may be absent.
pub(crate) fn optional_time(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| parse(&text)).transpose()
}

/// Reads a value from its text.
pub(crate) fn parsed<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let text: String = row.get(column)?;
    parse(&text)
}

/// Reads text that may be absent into its own type.
pub(crate) fn optional_id<T>(
    row: &Row<'_>,
    column: &str,
    wrap: impl FnOnce(String) -> T,
) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<String>>(column)?.map(wrap))
}

/// Reads a path, which need not be UTF-8.
pub(crate) fn path(row: &Row<'_>, column: &str) -> rusqlite::Result<PathBuf> {
    Ok(OsString::from_vec(row.get(column)?).into())
}

/// A path as it is kept.
pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Reads a number that is never negative.
pub(crate) fn count<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    T: TryFrom<i64, Error: std::error::Error + Send + Sync + 'static>,
{
    let number: i64 = row.get(column)?;
    T::try_from(number).map_err(|error| broken(Type::Integer, Box::new(error)))
}

/// Reads a value from JSON text.
pub(crate) fn json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| broken(Type::Text, Box::new(error)))
}

fn parse<T>(text: &str) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    text.parse().map_err(|error| broken(Type::Text, Box::new(error)))
}

/// The error for a column whose content this program did not write.
pub(crate) fn broken(
    kind: Type,
    source: Box<dyn std::error::Error + Send + Sync>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, kind, source)
}
