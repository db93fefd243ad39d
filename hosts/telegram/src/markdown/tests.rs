use proptest::prelude::*;

use super::*;

/// Entities as `kind "covered text" [extra]`, so that a failure can be read.
fn shown(rendered: &FormattedText) -> Vec<String> {
    let units: Vec<u16> = rendered.text.encode_utf16().collect();
    rendered
        .entities
        .iter()
        .map(|entity| {
            let covered =
                String::from_utf16(&units[entity.offset..entity.end()]).expect("whole characters");
            let extra =
                entity.url.clone().or(entity.language.clone()).map(|extra| format!(" [{extra}]"));
            format!("{:?} {covered:?}{}", entity.kind, extra.unwrap_or_default())
        })
        .collect()
}

#[track_caller]
fn check(source: &str, text: &str, entities: &[&str]) {
    let rendered = render_markdown(source);
    assert_eq!(rendered.text, text);
    assert_eq!(shown(&rendered), entities);
}

#[test]
fn inline_looks_become_entities() {
    check(
        "a **b** *c* ~~d~~ `e`",
        "a b c d e",
        &["Bold \"b\"", "Italic \"c\"", "Strikethrough \"d\"", "Code \"e\""],
    );
    check("***x***", "x", &["Bold \"x\"", "Italic \"x\""]);
    check("unclosed **bold and `code", "unclosed **bold and `code", &[]);
    check("snake_case_name 2*3*4", "snake_case_name 234", &["Italic \"3\""]);
}

#[test]
fn offsets_count_utf16_units() {
    let rendered = render_markdown("😀 **b**");
    assert_eq!((rendered.entities[0].offset, rendered.entities[0].length), (3, 1));
}

#[test]
fn code_shares_text_with_no_other_look() {
    check("**a `b` c**", "a b c", &["Bold \"a \"", "Code \"b\"", "Bold \" c\""]);
    check("[a `b`](https://x.y/)", "a b", &["TextLink \"a b\" [https://x.y/]"]);
    check("> a `b`", "a b", &["Blockquote \"a b\"", "Code \"b\""]);
    check("**`b`**", "b", &["Code \"b\""]);
}

#[test]
fn blocks_stand_apart() {
    check("# Title\ntext\n\nmore\nlines", "Title\n\ntext\n\nmore\nlines", &["Bold \"Title\""]);
    check("# a **b**", "a b", &["Bold \"a b\""]);
    check("a\n\n---\n\nb", "a\n\n———\n\nb", &[]);
    check(
        "```rust,ignore\nfn a() {}\n\nb\n```\nend",
        "fn a() {}\n\nb\n\nend",
        &["Pre \"fn a() {}\\n\\nb\" [rust]"],
    );
    check("```\nopen", "open", &["Pre \"open\""]);
    check("> a\n>\n> > b\n\nc", "a\n\nb\n\nc", &["Blockquote \"a\\n\\nb\""]);
}

#[test]
fn lists_keep_their_markers() {
    check("- a\n- b\n  - c\n- d\n\nend", "• a\n• b\n  • c\n• d\n\nend", &[]);
    check("3. a\n4. b", "3. a\n4. b", &[]);
    check("- a\n\n- b", "• a\n\n• b", &[]);
    check("- [x] done\n- [ ] open", "• ☑ done\n• ☐ open", &[]);
    check("- **a**: b", "• a: b", &["Bold \"a\""]);
}

#[test]
fn links_lead_somewhere_or_name_their_target() {
    check("[here](https://x.y/a_(b))", "here", &["TextLink \"here\" [https://x.y/a_(b)]"]);
    check("<https://x.y>", "https://x.y", &[]);
    check("[file](inbox/a.pdf)", "file (inbox/a.pdf)", &[]);
    check("![a cat](https://x.y/cat.png)", "a cat", &["TextLink \"a cat\" [https://x.y/cat.png]"]);
    check("![](https://x.y/cat.png)", "https://x.y/cat.png", &[]);
}

#[test]
fn links_that_act_inside_the_app_hide_behind_no_text() {
    check("[your bank](tg://socks?server=x)", "your bank (tg://socks?server=x)", &[]);
    check("[open](javascript:alert(1))", "open (javascript:alert(1))", &[]);
}

#[test]
fn tables_are_monospaced() {
    check(
        "| a | long |\n|---|---|\n| **1** | 2 |\n| 333 | [x](https://x.y) |\n\nend",
        "a   | long\n----+-----\n1   | 2\n333 | x\n\nend",
        &["Pre \"a   | long\\n----+-----\\n1   | 2\\n333 | x\""],
    );
}

#[test]
fn markup_of_other_kinds_stays_text() {
    check("List<int> and <CoT> & \"x\"", "List<int> and <CoT> & \"x\"", &[]);
    check("<b>x</b>\n\nend", "<b>x</b>\n\nend", &[]);
    check("[x]: https://nowhere", "[x]: https://nowhere", &[]);
    check("", "", &[]);
}

#[track_caller]
fn check_split(text: &str, limit: usize, pieces: &[&str]) {
    let split = split_text(&FormattedText::plain(text), limit);
    assert_eq!(split.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>(), pieces);
}

#[test]
fn cuts_prefer_blank_lines_then_lines_then_spaces() {
    check_split("aaaa\n\nbb\ncc", 9, &["aaaa\n\n", "bb\ncc"]);
    check_split("aaaa bb\ncc dd", 10, &["aaaa bb\n", "cc dd"]);
    check_split("aaaa bbbb cccc", 10, &["aaaa bbbb ", "cccc"]);
    check_split("aaaaaaaaaa", 4, &["aaaa", "aaaa", "aa"]);
    check_split("", 4, &[]);
}

#[test]
fn cuts_split_no_surrogate_pair_and_no_grapheme() {
    check_split("aaa😀b", 4, &["aaa", "😀b"]);
    check_split("aaae\u{301}\u{302}b", 5, &["aaa", "e\u{301}\u{302}b"]);
    // A family of four is one grapheme of 11 units.
    let family = "👨‍👩‍👧‍👦";
    check_split(&format!("ab{family}"), 12, &["ab", family]);
    check_split(
        &"\u{301}".repeat(7),
        3,
        &["\u{301}\u{301}\u{301}", "\u{301}\u{301}\u{301}", "\u{301}"],
    );
}

#[test]
fn a_cut_look_goes_on_in_the_next_piece() {
    let source = format!("intro\n\n```rust\n{}```", "let a = 1;\n".repeat(12));
    let pieces = split_text(&render_markdown(&source), 60);
    assert!(pieces.len() > 2);
    for piece in &pieces[1..] {
        assert_eq!(piece.entities.len(), 1, "{piece:?}");
        assert_eq!(piece.entities[0].language.as_deref(), Some("rust"));
        assert!(piece.text.starts_with("let a"), "cut inside a line: {piece:?}");
    }
}

#[test]
fn one_very_long_line_is_split_in_time() {
    let source = format!("```\n{}\n```", "x".repeat(1_000_000));
    let pieces = split_text(&render_markdown(&source), MAX_MESSAGE_UNITS);
    assert_eq!(pieces.len(), 245);
}

/// What every message must satisfy, whatever the input.
fn check_message(piece: &FormattedText, limit: usize) {
    let units: Vec<u16> = piece.text.encode_utf16().collect();
    assert!(units.len() <= limit && piece.entities.len() <= 100);
    for (index, one) in piece.entities.iter().enumerate() {
        assert!(one.length > 0 && one.end() <= units.len());
        String::from_utf16(&units[one.offset..one.end()]).expect("whole characters");
        for other in &piece.entities[index + 1..] {
            if one.end() <= other.offset || other.end() <= one.offset {
                continue;
            }
            let nested = (one.offset <= other.offset && other.end() <= one.end())
                || (other.offset <= one.offset && one.end() <= other.end());
            assert!(nested && one.kind != other.kind, "{one:?} {other:?}");
            for (code, company) in [(one, other), (other, one)] {
                if code.kind.is_code() {
                    assert_eq!(company.kind, EntityKind::Blockquote);
                    assert!(company.offset <= code.offset && code.end() <= company.end());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_splits_into_valid_messages(source in "[\\PC\n`*_>#|\\[\\]()-]{0,300}", limit in 2_usize..80) {
        check_any(&source, limit);
    }

    #[test]
    fn any_markup_splits_into_valid_messages(
        parts in prop::collection::vec(prop::sample::select(vec![
            "**", "*", "_", "~~", "`", "```", "\n", "\n\n", "> ", "- ", "1. ", "# ", "| a | b |\n|---|---|\n| c | d |\n",
            "[a](https://b.c)", "![](x)", "<b>", "😀", "e\u{301}", "word ", "    ", "\\", "👨‍👩‍👧‍👦", "`c`", "**b**",
        ]), 0..80),
        limit in 2_usize..60,
    ) {
        check_any(&parts.concat(), limit);
    }
}

fn check_any(source: &str, limit: usize) {
    let rendered = render_markdown(source);
    let pieces = split_text(&rendered, limit);
    assert_eq!(pieces.iter().map(|piece| piece.text.as_str()).collect::<String>(), rendered.text);
    for piece in &pieces {
        check_message(piece, limit);
    }
}
