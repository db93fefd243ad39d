use serde_json::{Value, json};

use super::*;

fn card() -> Value {
    json!({
        "name": "Travel", "description": "Books journeys", "version": "2.1",
        "supportedInterfaces": [
            {"url": "https://a.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "a.example:50051", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": true, "extendedAgentCard": true},
        "securitySchemes": {
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
            "login": {"oauth2SecurityScheme": {"flows": {"clientCredentials":
                {"tokenUrl": "https://login.example/token", "scopes": {"book": "may book"}}}}}
        },
        "securityRequirements": [{"schemes": {"key": {}}}, {"schemes": {"login": {"list": ["book"]}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain", "application/pdf"],
        "skills": [{"id": "book", "name": "Book", "description": "Books", "tags": ["travel"]}]
    })
}

fn check(card: &Value) -> CardCheck {
    check_card(&card.to_string())
}

/// What is found when the card has the value at the place; `null` takes the member away.
fn found(place: &str, value: Value) -> Vec<String> {
    let mut card = card();
    let (owner, name) = place.rsplit_once('/').unwrap();
    let owner = card.pointer_mut(owner).unwrap();
    match owner {
        Value::Object(members) if value.is_null() => drop(members.remove(name)),
        Value::Object(members) => drop(members.insert(name.to_owned(), value)),
        owner => owner[name.parse::<usize>().unwrap()] = value,
    }
    let line = |f: &CardFinding| format!("{} {}: {} ({})", f.severity, f.path, f.problem, f.rule);
    check(&card).findings.iter().map(line).collect()
}

#[track_caller]
fn assert_found(place: &str, value: Value, start: &str, section: &str) {
    let found = found(place, value);
    let is_it = |line: &String| line.starts_with(start) && line.contains(&format!("({section}"));
    assert!(found.len() == 1 && found.iter().all(is_it), "{place}: {found:#?}");
}

#[test]
fn a_card_without_a_fault_has_no_findings() {
    assert_eq!(check(&card()), CardCheck::default());
}

#[test]
fn missing_members_are_named_with_the_object_that_needs_them() {
    for name in ["name", "description", "version", "capabilities", "skills", "supportedInterfaces"]
    {
        let start = format!("error {name}: it is missing");
        assert_found(&format!("/{name}"), Value::Null, &start, "4.4.1");
    }
    let interface = "/supportedInterfaces/0/protocolVersion";
    assert_found(
        interface,
        Value::Null,
        "error supportedInterfaces[0].protocolVersion: it is missing",
        "4.4.6",
    );
    assert_found("/skills/0/tags", Value::Null, "error skills[0].tags: it is missing", "4.4.5");
    let key = "/securitySchemes/key/apiKeySecurityScheme/name";
    let start = "error securitySchemes.key.apiKeySecurityScheme.name: it is missing";
    assert_found(key, Value::Null, start, "4.5.2");
    let flow = "/securitySchemes/login/oauth2SecurityScheme/flows/clientCredentials/scopes";
    let start = "error securitySchemes.login.oauth2SecurityScheme.flows.clientCredentials.scopes: it is missing";
    assert_found(flow, Value::Null, start, "4.5.9");
}

#[test]
fn wrong_kinds_say_what_was_read() {
    assert_found("/name", json!(5), "error name: it is a number, and must be text", "4.4.1");
    assert_found(
        "/skills",
        json!({}),
        "error skills: it is an object, and must be a list",
        "4.4.1",
    );
    let start = "error capabilities.streaming: it is text, and must be true or false";
    assert_found("/capabilities/streaming", json!("yes"), start, "4.4.3");
    let start = "error defaultInputModes[0]: it is a list, and must be text";
    assert_found("/defaultInputModes/0", json!([]), start, "4.4.1");
    let start = "error skills[0]: it is true or false, and must be an object";
    assert_found("/skills/0", json!(true), start, "4.4.5");
}

#[test]
fn required_lists_are_not_empty() {
    assert_found(
        "/defaultOutputModes",
        json!([]),
        "error defaultOutputModes: it is empty",
        "4.4.1 and 5.7",
    );
    assert_found("/skills/0/tags", json!([]), "error skills[0].tags: it is empty", "4.4.5 and 5.7");
    assert_found("/name", json!(" "), "warning name: it is empty", "4.4.1");
}

#[test]
fn empty_texts_that_a_card_cannot_be_read_without_are_errors() {
    assert_found("/name", json!(""), "error name: it is empty", "4.4.1");
    for name in ["url", "protocolBinding", "protocolVersion"] {
        let start = format!("error supportedInterfaces[0].{name}: it is empty");
        assert_found(&format!("/supportedInterfaces/0/{name}"), json!(""), &start, "4.4.6");
    }
    for place in ["/description", "/skills/0/name"] {
        let path = place[1..].replace("/0/", "[0].");
        assert_found(place, json!(""), &format!("warning {path}: it is empty"), "4.4");
    }
}

#[test]
fn a_card_that_cannot_be_read_is_not_valid() {
    let text = card().to_string();
    let twice = |member: &str| (member.to_owned(), format!("{member},{member}"));
    let key = r#""key":{"apiKeySecurityScheme":{"location":"header","name":"X-API-Key"}}"#;
    let long =
        key.replacen("key", &"n".repeat(100_000), 1).replace("{\"loc", "{\"name\":\"\",\"loc");
    for ((from, to), place) in [
        (twice(r#""name":"Travel""#), "name"),
        (twice(r#""id":"book""#), "skills[0].id"),
        ((key.to_owned(), format!("{key},{long}")), "securitySchemes.nnn"),
    ] {
        assert!(text.contains(&from), "{text}");
        let check = check_card(&text.replacen(&from, &to, 1));
        assert_eq!((check.errors, check.warnings), (1, 0), "{:#?}", check.findings);
        let CardFinding { path, problem, rule, .. } = &check.findings[0];
        assert!(path.starts_with(place) && path.len() < 400, "{path}");
        assert!(problem.starts_with("callers cannot read it: ") && rule.starts_with("8.2: "));
    }
    let old = r#"{"name":"Old","description":"Old","url":"https://a.example/","version":"1",
        "protocolVersion":"0.3.0","capabilities":{},"defaultInputModes":["a/b"],"defaultOutputModes":["a/b"],
        "skills":[{"id":"a","name":"A","description":"A","tags":["a"]}],
        "securitySchemes":{"key":{"type":"apiKey","name":5}}}"#;
    let check = check_card(old);
    assert_eq!((check.errors, check.warnings), (1, 1), "{:#?}", check.findings);
    assert!(check.findings[0].path.starts_with("securitySchemes.key."), "{:#?}", check.findings);
}

#[test]
fn names_of_other_spelling_are_errors_and_near_ones_are_warnings() {
    assert_found("/icon_url", json!("https://a.example/i"), "error icon_url: write iconUrl", "5.5");
    assert_found(
        "/documentatonUrl",
        json!("x"),
        "warning documentatonUrl: nobody knows it",
        "4.4.1",
    );
    assert_eq!(found("/x-rating", json!(5)), Vec::<String>::new());
}

#[test]
fn unset_optional_members_are_left_out() {
    let mut card = card();
    card["iconUrl"] = Value::Null;
    let check = check(&card);
    assert!(check.is_valid());
    assert_eq!(check.findings[0].path, "iconUrl");
    assert_eq!(check.findings[0].severity, CardSeverity::Warning);
}

#[test]
fn addresses_must_be_callable() {
    let url = "/supportedInterfaces/0/url";
    let path = "supportedInterfaces[0].url";
    assert_found(url, json!("/rpc"), &format!("error {path}: it is not an absolute URL"), "4.4.6");
    assert_found(
        url,
        json!("ftp://a.example/"),
        &format!("error {path}: its scheme is \"ftp\""),
        "4.4.6",
    );
    assert_found(
        url,
        json!("https://me:pw@a.example/"),
        &format!("error {path}: it carries"),
        "4.4.6",
    );
    assert_found(url, json!("http://a.example/"), &format!("warning {path}: it is http"), "7.1");
    assert_eq!(found(url, json!("http://127.0.0.1:9000/")), Vec::<String>::new());
    assert_eq!(found(url, json!("http://[::1]:9000/")), Vec::<String>::new());
}

#[test]
fn bindings_and_versions_are_the_known_ones() {
    let binding = "/supportedInterfaces/0/protocolBinding";
    let path = "supportedInterfaces[0].protocolBinding";
    assert_found(
        binding,
        json!("json-rpc"),
        &format!("error {path}: it is \"json-rpc\": write JSONRPC"),
        "4.4.6",
    );
    assert_found(
        binding,
        json!("REST"),
        &format!("error {path}: it is \"REST\": write HTTP+JSON"),
        "4.4.6",
    );
    assert_found(binding, json!("carrier"), &format!("warning {path}: it is \"carrier\""), "4.4.6");
    assert_eq!(found(binding, json!("https://a.example/bindings/ws/v1")), Vec::<String>::new());
    let version = "/supportedInterfaces/0/protocolVersion";
    let start = "warning supportedInterfaces[0].protocolVersion: it is \"1.0.0\"";
    assert_found(version, json!("1.0.0"), start, "3.6");
    assert_found(
        "/supportedInterfaces/1",
        card()["supportedInterfaces"][0].clone(),
        "warning supportedInterfaces[1]: it is listed before",
        "8.3.1",
    );
}

#[test]
fn a_card_that_nobody_can_use_says_so() {
    let own = json!([{"url": "wss://a.example/", "protocolBinding": "https://a.example/ws", "protocolVersion": "1.0"}]);
    assert_found(
        "/supportedInterfaces",
        own,
        "warning supportedInterfaces: no interface has",
        "8.3.1",
    );
}

#[test]
fn skills_have_ids_of_their_own() {
    let skill = card()["skills"][0].clone();
    let start = "error skills[1].id: another skill is \"book\" too";
    assert_found("/skills", json!([skill, skill]), start, "4.4.5");
}

#[test]
fn requirements_name_declared_schemes_in_the_form_of_1_0() {
    let requirement = json!({"schemes": {"kye": {}}});
    let start = "error securityRequirements[0].schemes.kye: securitySchemes declares";
    assert_found("/securityRequirements/0", requirement, start, "4.5");
    let start = "error skills[0].securityRequirements[0].schemes.other: securitySchemes declares";
    let requirement = json!([{"schemes": {"other": {"list": []}}}]);
    assert_found("/skills/0/securityRequirements", requirement, start, "4.5");
    let found = found("/securityRequirements/0", json!({"key": []}));
    assert!(found.iter().any(|line| line.contains("it is written as in A2A 0.3")), "{found:#?}");
}

#[test]
fn schemes_say_one_kind() {
    let found =
        found("/securitySchemes/key", json!({"type": "apiKey", "in": "header", "name": "X"}));
    assert!(found[0].starts_with("error securitySchemes.key: it says no kind"), "{found:#?}");
    assert!(
        found[1].starts_with("warning securitySchemes.key.type: it is a member of A2A 0.3"),
        "{found:#?}"
    );
    let both = json!({"mtlsSecurityScheme": {}, "httpAuthSecurityScheme": {"scheme": "Bearer"}});
    let start = "error securitySchemes.key: it has httpAuthSecurityScheme and mtlsSecurityScheme: leave one";
    assert_found("/securitySchemes/key", both, start, "4.5.1");
}

#[test]
fn keys_have_a_place_that_there_is() {
    let key = "/securitySchemes/key/apiKeySecurityScheme";
    let path = "securitySchemes.key.apiKeySecurityScheme";
    assert_found(
        &format!("{key}/location"),
        json!("body"),
        &format!("error {path}.location: it is \"body\""),
        "4.5.2",
    );
    assert_found(
        &format!("{key}/name"),
        json!("X Key\r\n"),
        &format!("error {path}.name: no header can"),
        "4.5.2",
    );
}

#[test]
fn flows_are_one_and_safe() {
    let flows = "/securitySchemes/login/oauth2SecurityScheme/flows";
    let path = "securitySchemes.login.oauth2SecurityScheme.flows";
    assert_found(flows, json!({}), &format!("error {path}: it says no kind"), "4.5.7");
    let implicit = json!({"implicit": {"authorizationUrl": "https://a.example/"}});
    assert_found(flows, implicit, &format!("warning {path}.implicit: use"), "4.5.7");
    let token = format!("{flows}/clientCredentials/tokenUrl");
    let start = format!("warning {path}.clientCredentials.tokenUrl: its scheme is \"http\"");
    assert_found(&token, json!("http://a.example/"), &start, "7.1");
}

#[test]
fn signatures_can_be_read() {
    // {"alg":"ES256","kid":"k"} and {"alg":"ES256"}
    let good = json!([{"protected": "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ", "signature": "QUJD"}]);
    assert_eq!(found("/signatures", good), Vec::<String>::new());
    let bad = json!([{"protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "QUJD"}]);
    assert_found(
        "/signatures",
        bad,
        "error signatures[0].protected: its header has no kid",
        "8.4.2",
    );
    let bad = json!([{"protected": "%%", "signature": "QUJD"}]);
    assert_found("/signatures", bad, "error signatures[0].protected: it is not base64url", "8.4.2");
}

#[test]
fn an_extended_card_needs_callers_that_authenticate() {
    let mut card = card();
    let members = card.as_object_mut().unwrap();
    members.remove("securitySchemes");
    members.remove("securityRequirements");
    let check = check(&card);
    assert_eq!(check.findings[0].path, "capabilities.extendedAgentCard");
    assert!(check.is_valid());
}

#[test]
fn text_that_is_no_card_is_one_finding() {
    let check = check_card("{\"name\": \n oops}");
    assert_eq!(check.errors, 1);
    assert!(check.findings[0].problem.contains("line 2"), "{:?}", check.findings);
    assert_eq!(check_card("[]").findings[0].problem, "it is a list, not an object");
    // Deeper than anybody nests a card.
    assert_eq!(check_card(&"[".repeat(100_000)).errors, 1);
}

#[test]
fn a_card_of_0_3_is_checked_as_one() {
    let old = json!({
        "name": "Old", "description": "Old", "url": "https://a.example/", "version": "1", "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC", "capabilities": {}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"], "security": [{"key": []}],
        "skills": [{"id": "a", "name": "A", "description": "A", "tags": ["a"]}]
    });
    let check = check(&old);
    let paths: Vec<_> = check.findings.iter().map(|f| (f.severity, &*f.path)).collect();
    assert_eq!(paths, [(CardSeverity::Error, "security[0].key"), (CardSeverity::Warning, "")]);
}

#[test]
fn a_card_for_old_and_new_callers_is_one_of_1_0() {
    let mut card = card();
    card["url"] = json!("https://a.example/a2a");
    card["protocolVersion"] = json!("0.3.0");
    card["preferredTransport"] = json!("JSONRPC");
    card["security"] = json!([{"key": []}]);
    card["supportsAuthenticatedExtendedCard"] = json!(true);
    assert_eq!(check(&card), CardCheck::default());
}

#[test]
fn findings_are_capped_and_counted_and_errors_win() {
    let mut card = card();
    let skill = card["skills"][0].clone();
    card["defaultInputModes"] = json!(vec!["plain"; 500]);
    card["skills"] = json!(vec![skill; 201]);
    let check = check(&card);
    assert_eq!((check.errors, check.warnings), (200, 500));
    assert_eq!(check.findings.len(), CardCheck::MAX_FINDINGS);
    assert!(check.findings.iter().all(|finding| finding.severity == CardSeverity::Error));
}

#[test]
fn long_words_of_a_card_are_cut_wherever_they_stand() {
    let long = "n".repeat(100_000);
    let mut card = card();
    card["skills"][0]["id"] = json!(long);
    card["skills"] = json!([card["skills"][0], card["skills"][0]]);
    card["defaultInputModes"] = json!([long]);
    card["supportedInterfaces"][0] =
        json!({"url": format!("{long}://x"), "protocolBinding": long, "protocolVersion": long});
    card["supportedInterfaces"][1]["url"] = json!(format!("{long}://x"));
    card["supportedInterfaces"][1]["protocolBinding"] = json!("JSONRPC");
    let key = json!({"location": long, "name": format!("{long} "), long.as_str(): 1});
    card["securitySchemes"] = json!({long.as_str(): {"apiKeySecurityScheme": key, "Type": 1}});
    card["securityRequirements"] = json!([{"schemes": {long.as_str(): {}, "other": {}}}]);
    let check = check(&card);
    assert!(check.findings.len() > 6, "{:#?}", check.findings);
    for finding in check.findings {
        assert!(finding.path.len() < 400 && finding.problem.len() < 400, "{finding:?}");
    }
}

#[test]
fn a_long_name_is_not_repeated_for_each_of_very_many_members_below_it() {
    let members = (0..40_000).map(|n| (format!("unknown{n}"), json!(1)));
    let scheme = Value::Object(members.collect());
    let mut card = card();
    card["securitySchemes"] = json!({"n".repeat(400_000): scheme});
    assert!(check(&card).findings.iter().all(|finding| finding.path.len() < 400));
}

#[test]
fn a_card_is_served_as_json_and_says_how_long_it_counts() {
    let good = CardHeaders {
        content_type: Some("application/json; charset=utf-8".to_owned()),
        cache_control: Some("public, Max-Age=60".to_owned()),
        etag: Some("\"1\"".to_owned()),
    };
    let card = card().to_string();
    let found = |headers: &CardHeaders| {
        let check = check_served_card(&card, headers);
        assert_eq!((check.errors, check.warnings), (0, check.findings.len()));
        check.findings.into_iter().map(|f| format!("{} ({}", f.problem, f.rule)).collect::<Vec<_>>()
    };
    assert_eq!(found(&good), Vec::<String>::new());
    for said in ["no-store", "no-cache, private"] {
        let headers = CardHeaders { cache_control: Some(said.to_owned()), ..good.clone() };
        assert_eq!(found(&headers), Vec::<String>::new(), "{said}");
    }
    let none = found(&CardHeaders::default());
    assert_eq!(none.len(), 3, "{none:#?}");
    for (headers, start, section) in [
        (
            CardHeaders { content_type: Some("text/html".to_owned()), ..good.clone() },
            "it is served as \"text/html\"",
            "8.2",
        ),
        (
            CardHeaders { cache_control: Some("public".to_owned()), ..good.clone() },
            "its Cache-Control has no max-age",
            "8.6.1",
        ),
        (CardHeaders { etag: None, ..good }, "it has no ETag", "8.6.1"),
    ] {
        let found = found(&headers);
        assert!(found.len() == 1 && found[0].starts_with(start), "{found:#?}");
        assert!(found[0].contains(&format!("({section}:")), "{found:#?}");
    }
}
