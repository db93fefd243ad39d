//! Names of received files, which agents choose and we must not trust.

/// The longest name, in bytes. Some file systems end at 255, and a suffix must still fit.
const MAX_NAME: usize = 100;
/// The longest extension that is kept when a name is cut, in bytes.
const MAX_EXTENSION: usize = 16;

/// Names that some systems take for devices.
const DEVICES: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8",
    "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// Makes a safe name of what the agent called the file: its last component, of letters, digits, `.`, `_`, `-` and
/// spaces, not hidden, not too long, and with an extension if the media type gives one.
pub(super) fn safe_name(given: Option<&str>, media_type: Option<&str>) -> String {
    let base = given.unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name: String = base
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ') { c } else { '_' })
        .collect();
    name = name.trim_start_matches(['.', '-', ' ']).trim_end_matches(['.', ' ']).to_owned();
    if name.is_empty() {
        "file".clone_into(&mut name);
    }
    if !name.contains('.')
        && let Some(extension) = media_type.and_then(extension_of)
    {
        name = format!("{name}.{extension}");
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    if DEVICES.contains(&stem.as_str()) {
        name.insert(0, '_');
    }
    cut(&name)
}

/// The name with a number in it, for when it is taken: `report-2.pdf`.
pub(super) fn numbered(name: &str, number: u32) -> String {
    let (stem, extension) = split(name);
    format!("{stem}-{number}{extension}")
}

/// Stem and extension; the extension keeps its dot and is empty if there is none.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(dot) if dot > 0 && name.len() - dot <= MAX_EXTENSION => name.split_at(dot),
        Some(_) | None => (name, ""),
    }
}

fn cut(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let (stem, extension) = split(name);
    let mut end = (MAX_NAME - extension.len()).min(stem.len());
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{extension}", stem[..end].trim_end())
}

fn extension_of(media_type: &str) -> Option<&'static str> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "image/png" => Some("png"),
        "image/jpeg" => Some("jpg"),
        "image/gif" => Some("gif"),
        "image/webp" => Some("webp"),
        "image/svg+xml" => Some("svg"),
        "application/pdf" => Some("pdf"),
        "application/zip" => Some("zip"),
        "application/json" => Some("json"),
        "text/plain" => Some("txt"),
        "text/markdown" => Some("md"),
        "text/csv" => Some("csv"),
        "text/html" => Some("html"),
        "audio/mpeg" => Some("mp3"),
        "audio/ogg" => Some("ogg"),
        "video/mp4" => Some("mp4"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, expected: &str) {
        assert_eq!(safe_name(Some(given), None), expected);
    }

    #[test]
    fn ordinary_names_stay() {
        for name in ["itinerary.pdf", "Réisé 2026_v-1.tar.gz", "報告.txt"] {
            check(name, name);
        }
    }

    #[test]
    fn paths_lose_their_folders() {
        for given in ["../x.txt", "/etc/x.txt", "C:\\dir\\x.txt", "a/../../x.txt", "..\\x.txt"] {
            check(given, "x.txt");
        }
    }

    #[test]
    fn hidden_empty_and_special_names_become_plain() {
        check(".bashrc", "bashrc");
        check("..", "file");
        check("a/", "file");
        check("", "file");
        check("-rf", "rf");
        check("x. . ", "x");
        check("a\0b\nc\u{202e}d:e*?.txt", "a_b_c_d_e__.txt");
        check("CON", "_CON");
        check("nul .txt", "_nul .txt");
        check("com1.tar.gz", "_com1.tar.gz");
        check("console", "console");
    }

    #[test]
    fn long_names_are_cut_at_a_character_and_keep_the_extension() {
        let name = safe_name(Some(&format!("{}.pdf", "é".repeat(300))), None);
        assert_eq!((name.len(), name.ends_with("é.pdf")), (100, true), "{name}");
        let name = safe_name(Some(&format!("a.{}", "x".repeat(300))), None);
        assert_eq!(name.len(), 100);
    }

    #[test]
    fn missing_extension_comes_from_the_media_type() {
        assert_eq!(safe_name(None, Some("application/pdf")), "file.pdf");
        assert_eq!(safe_name(Some("notes"), Some("text/plain; charset=utf-8")), "notes.txt");
        assert_eq!(safe_name(Some("notes.md"), Some("text/plain")), "notes.md");
        assert_eq!(safe_name(None, Some("application/x-odd")), "file");
    }

    #[test]
    fn numbers_go_before_the_extension() {
        assert_eq!(numbered("report.pdf", 2), "report-2.pdf");
        assert_eq!(numbered("report", 3), "report-3");
    }

    proptest::proptest! {
        #[test]
        fn any_name_becomes_one_harmless_component(given in ".*", media_type in ".*", number in 2_u32..10_000) {
            let name = safe_name(Some(&given), Some(&media_type));
            for name in [numbered(&name, number), name] {
                let path = std::path::Path::new(&name);
                proptest::prop_assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(name.as_str()));
                proptest::prop_assert!(name.len() <= MAX_NAME + 5, "{}", name);
                proptest::prop_assert!(!name.starts_with(['.', '-']), "{}", name);
                proptest::prop_assert!(!name.chars().any(|c| c.is_control() || "/\\:*?\"<>|".contains(c)), "{}", name);
            }
        }
    }
}
