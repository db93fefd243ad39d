use super::*;

fn decided(rules: &ScriptRules, messages: &[&str]) -> String {
    let messages: Vec<String> = messages.iter().map(|text| (*text).to_owned()).collect();
    let Some(found) = rules.find(&messages, "") else { return "nothing".to_owned() };
    let fill = |template: &Template| template.fill(&found.values);
    let after = found.rule.after.as_ref().map(|after| format!("after {} ", fill(after)));
    let outcome = match &found.rule.outcome {
        Outcome::Done { say, file, chunks } => {
            let say = say.as_ref().map(fill).unwrap_or_default();
            let file =
                file.as_ref().map(|file| format!(" + {}={}", fill(&file.name), fill(&file.text)));
            format!("{say}{} x{chunks}", file.unwrap_or_default())
        }
        Outcome::Ask(text) => format!("ask {}", fill(text)),
        Outcome::Fail(text) => format!("fail {}", fill(text)),
        Outcome::Reject(text) => format!("reject {}", fill(text)),
        Outcome::Reply(text) => format!("reply {}", fill(text)),
    };
    after.unwrap_or_default() + &outcome
}

#[test]
fn built_in_rules_do_what_the_card_says() {
    let rules = ScriptRules::built_in();
    for (messages, expected) in [
        (&["echo Hello there"][..], "echo: Hello there x1"),
        (
            &["report line one\nline two"],
            "The report is attached. + report.txt=line one\nline two\n x1",
        ),
        (&["book a table"], "ask Which day?"),
        (&["ask me about the trip"], "ask Which day?"),
        (&["book a table", "Friday"], "Booked a table for Friday. x1"),
        (&["slow 5s hello"], "after 5s finished: hello x1"),
        (&["slow 2 hello"], "after 2s finished: hello x1"),
        (&["fail out of paper"], "fail out of paper"),
        (&["reject this"], "reject The demo agent does not take this."),
        (&["anything $1 at all"], "You said: anything $1 at all x1"),
        (&[""], "You said:  x1"),
    ] {
        assert_eq!(decided(&rules, messages), expected, "{messages:?}");
    }
}

#[test]
fn answers_can_lead_to_further_questions() {
    let rules = ScriptRules::parse(
        r#"
        [[rule]]
        name = "start"
        when = "^plan (.+)$"
        ask = "When?"
        [[rule]]
        name = "when"
        answer_to = "start"
        when = "(?i)(monday|friday)"
        ask = "How many, on $1?"
        [[rule]]
        answer_to = "start"
        say = "$answer is not a day for $1"
        [[rule]]
        answer_to = "when"
        chunks = 3
        say = "$1: $answer"
        "#,
    )
    .unwrap();
    assert_eq!(decided(&rules, &["plan tea"]), "ask When?");
    assert_eq!(decided(&rules, &["plan tea", "on Friday"]), "ask How many, on Friday?");
    assert_eq!(decided(&rules, &["plan tea", "never"]), "never is not a day for tea x1");
    assert_eq!(decided(&rules, &["plan tea", "on Friday", "six"]), "Friday: six x3");
    assert_eq!(decided(&rules, &["else"]), "nothing");
}

#[test]
fn every_problem_of_a_file_is_told_at_once() {
    let error = ScriptRules::parse(
        r#"
        [[rule]]
        say = "no condition"
        [[rule]]
        when = "("
        say = "x"
        [[rule]]
        when = "a"
        [[rule]]
        when = "a"
        say = "x"
        fail = "y"
        [[rule]]
        when = "a"
        ask = "unnamed"
        [[rule]]
        answer_to = "nobody"
        say = "x"
        [[rule]]
        when = "a"
        after = "5"
        say = "x"
        "#,
    )
    .unwrap_err();
    let numbers: Vec<&str> = error.problems.iter().map(|problem| &problem[..7]).collect();
    assert_eq!(
        numbers,
        ["rule 1:", "rule 2:", "rule 3:", "rule 4:", "rule 5:", "rule 6:", "rule 7:"]
    );
    assert!(ScriptRules::parse("[[rule]]\nwhen = 'a'\nsay = 'b'\nsaid = 'c'").is_err());
    assert!(ScriptRules::parse("").is_err());
}

#[test]
fn lengths_have_a_unit_and_an_end() {
    assert_eq!(parse_after("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_after("2m"), Ok(Duration::from_mins(2)));
    for wrong in ["", "5", "s", "5 s", "-1s", "25h", "99999999999999999999s"] {
        assert!(parse_after(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn names_of_rules_become_skills_of_the_card() {
    let rules = ScriptRules::parse(
        r#"
        [[rule]]
        name = "plan"
        when = "^plan"
        ask = "When?"
        [[rule]]
        name = "planned"
        answer_to = "plan"
        say = "planned"
        [[rule]]
        name = "wait"
        when = "^wait$"
        after = "1s"
        say = "waited"
        [[rule]]
        name = "wait"
        when = "^wait a bit$"
        say = "waited"
        [[rule]]
        when = "x"
        fail = "y"
        "#,
    )
    .unwrap();
    let card = crate::scripted::ScriptedAgent::card_of(&rules);
    let skills: Vec<_> =
        card.skills.iter().map(|skill| (skill.id.as_str(), skill.description.as_str())).collect();
    assert_eq!(skills, [("plan", "Asks back."), ("wait", "Answers after a while.")]);
    assert!(card.skills.iter().all(|skill| skill.examples.is_empty()));
}
