//! The tour, and a break for each of its steps: it has to notice, and to name the step.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use tempfile::TempDir;
use volcanic_base::Chance;
use volcanic_cli::{TourDeps, run_tour, told};
use volcanic_testkit::Program;

use crate::world::{SOON, VOLCANIC, nobody, shows};

/// The rules of a remote that does what the tour asks for, by name.
const RULES: &[(&str, &str)] = &[
    ("echo", "[[rule]]\nwhen = '^echo (.+)$'\nsay = \"echo: $1\"\n"),
    ("book", "[[rule]]\nname = \"book\"\nwhen = '^book (.+)$'\nask = \"Which day?\"\n"),
    ("booked", "[[rule]]\nanswer_to = \"book\"\nsay = \"Booked $1 for $answer.\"\n"),
    (
        "report",
        "[[rule]]\nwhen = '^report (.+)$'\nsay = \"Here.\"\nfile = { name = \"r.txt\", text = \"$1\" }\n",
    ),
    ("slow", "[[rule]]\nwhen = '^slow (\\d+)s (.+)$'\nafter = \"${1}s\"\nsay = \"done: $2\"\n"),
    ("fail", "[[rule]]\nwhen = '^fail (.+)$'\nfail = \"$1\"\n"),
    (
        "plan",
        "[[rule]]\nname = \"plan\"\nwhen = '^plan (\\d+)s (.+)$'\nafter = \"${1}s\"\nask = \"Which day for $2?\"\n",
    ),
    (
        "planned",
        "[[rule]]\nanswer_to = \"plan\"\nafter = \"${1}s\"\nsay = \"Planned $2 for $answer.\"\n",
    ),
];

struct Stage {
    folder: TempDir,
    assistant: PathBuf,
    remote: PathBuf,
    rules: Option<PathBuf>,
    patience: Duration,
}

impl Stage {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self {
            folder,
            assistant: VOLCANIC.into(),
            remote: VOLCANIC.into(),
            rules: None,
            patience: SOON,
        }
    }

    /// A remote in which one rule is another.
    fn with_rule(name: &str, rule: &str) -> Self {
        let rules: String =
            RULES.iter().map(|(known, text)| if *known == name { rule } else { *text }).collect();
        let mut stage = Self::new();
        let path = stage.folder.path().join("rules.toml");
        fs::write(&path, rules).unwrap();
        stage.rules = Some(path);
        stage
    }

    /// A program in the place of a binary; `@real` in it is that binary.
    fn script(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("instead.sh");
        let text = text.replace("@real", VOLCANIC);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Runs the tour; what it told, and what it missed.
    async fn run(&self) -> (String, Result<(), String>) {
        let stage = self.folder.path().join("stage");
        fs::create_dir(&stage).unwrap();
        let chance = Chance::from_os();
        let deps = TourDeps {
            assistant: self.assistant.clone(),
            remote: self.remote.clone(),
            rules: self.rules.clone(),
            folder: &stage,
            chance: &chance,
            patience: self.patience,
        };
        let mut screen = Vec::new();
        let ran = run_tour(&deps, &mut screen).await.map_err(|error| told(&error));
        (String::from_utf8(screen).unwrap(), ran)
    }

    /// Checks that the tour gets as far as the step, and that it is this step that it misses, for this reason.
    async fn misses(mut self, step: u32, reason: &str) {
        // What does not come is waited for as long as this.
        self.patience = Duration::from_secs(3);
        let (screen, ran) = self.run().await;
        let missing = ran.expect_err(&screen);
        assert!(missing.starts_with(&format!("step {step}, ")), "{missing}\n{screen}");
        assert!(missing.contains(reason), "`{reason}` is not why: {missing}");
        assert!(screen.contains(&format!("\n{step}. ")), "{screen}");
        assert!(!screen.contains("All of it happened"), "{screen}");
    }
}

#[tokio::test]
async fn everything_happens() {
    tokio::join!(with_the_rules_below(), the_shipped_demo_without_a_terminal());
}

async fn with_the_rules_below() {
    let (screen, ran) = Stage::with_rule("none", "").run().await;
    ran.unwrap_or_else(|missing| panic!("{missing}\n{screen}"));
    for step in 1..=8 {
        assert!(screen.contains(&format!("\n{step}. ")), "{screen}");
    }
    assert!(screen.contains("kill -9") && screen.contains("All of it happened"), "{screen}");
}

async fn the_shipped_demo_without_a_terminal() {
    let demo = Program::new("the demo", VOLCANIC).arg("demo").env("HOME", "/nowhere");
    let (status, lines) = demo.start().unwrap().finish(SOON).await.unwrap();
    assert!(status.success(), "{status}: {lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("All of it happened")), "{lines:?}");
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_missed_in_step_1() {
    step_1_an_agent_that_is_not_there().await;
}

#[tokio::test]
async fn a_quick_task_gone_wrong_is_missed_in_step_2() {
    tokio::join!(
        step_2_an_answer_without_the_word(),
        step_2_an_assistant_that_only_pretends_to_ask(),
        step_2_a_message_that_is_sent_twice()
    );
}

#[tokio::test]
async fn a_question_gone_wrong_is_missed_in_step_3() {
    tokio::join!(step_3_a_remote_that_does_not_ask(), step_3_an_answer_that_gets_lost());
}

#[tokio::test]
async fn a_file_gone_wrong_is_missed_in_step_4() {
    tokio::join!(step_4_a_file_with_something_else_in_it(), step_4_no_file());
}

#[tokio::test]
async fn a_long_task_gone_wrong_is_missed_in_step_5() {
    tokio::join!(
        step_5_a_task_that_is_not_long(),
        step_5_a_result_without_the_word(),
        step_5_an_assistant_that_forgets_when_it_is_killed(),
        step_5_a_result_that_is_shown_twice()
    );
}

#[tokio::test]
async fn a_failure_gone_wrong_is_missed_in_step_6() {
    tokio::join!(
        step_6_a_failure_that_is_told_as_a_success(),
        step_6_a_failure_without_its_reason()
    );
}

#[tokio::test]
async fn a_push_gone_wrong_is_missed_in_step_7() {
    tokio::join!(
        step_7_an_assistant_that_nobody_can_reach(),
        step_7_an_agent_that_calls_somebody_else()
    );
}

#[tokio::test]
async fn a_later_question_gone_wrong_is_missed_in_step_8() {
    tokio::join!(
        step_8_a_question_that_comes_at_once(),
        step_8_a_question_about_something_else(),
        step_8_an_outcome_that_comes_at_once(),
        step_8_an_answer_that_gets_lost()
    );
}

#[tokio::test]
async fn the_demo_ends_with_1_and_names_the_step_when_something_is_missing() {
    let demo = Program::new("the demo", VOLCANIC).args(["demo", "--tour"]).env("HOME", "/nowhere");
    let mut demo = demo.start().unwrap();
    shows(&mut demo, "5. ").await;
    // The assistant dies before the demo kills it.
    let assistant = child_of(demo.id().unwrap(), "chat").expect("the demo has an assistant");
    let killed = tokio::process::Command::new("kill").args(["-s", "KILL", &assistant]).status();
    assert!(killed.await.unwrap().success());
    let (status, lines) = demo.finish(SOON).await.unwrap();
    assert_eq!(status.code(), Some(1), "{lines:?}");
    let missing = lines.iter().find(|line| line.starts_with("Missing: ")).expect("what is missing");
    assert!(missing.starts_with("Missing: step 5, "), "{missing}");
    assert!(missing.contains("the assistant"), "{missing}");
}

/// The child of a process with that word on its command line.
fn child_of(id: u32, word: &str) -> Option<String> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let children: String = threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .collect();
    children.split_whitespace().map(ToOwned::to_owned).find(|child| {
        let line = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.split('\0').any(|argument| argument == word)
    })
}

async fn step_1_an_agent_that_is_not_there() {
    let mut stage = Stage::new();
    let nobody = nobody();
    let script = format!("echo 'listening on {}'; exec sleep 60", nobody.url);
    stage.remote = stage.script(&script);
    stage.misses(1, "was not reached").await;
}

async fn step_2_an_answer_without_the_word() {
    let stage = Stage::with_rule("echo", "[[rule]]\nwhen = '^echo'\nsay = \"echo: echo\"\n");
    stage.misses(2, "did not show an answer with w").await;
}

async fn step_2_an_assistant_that_only_pretends_to_ask() {
    let mut stage = Stage::new();
    stage.assistant = stage.script(
        "echo 'demo: an agent'; echo 'card: demo agent'; while read -r line; do echo \"$line\"; done",
    );
    stage.misses(2, "once, but received it 0 times").await;
}

async fn step_2_a_message_that_is_sent_twice() {
    let mut stage = Stage::new();
    // Every word goes to the remote a second time, behind the assistant's back.
    stage.assistant = stage.script(
        "case $1 in chat) ;; *) exec @real \"$@\" ;; esac\n\
         while IFS= read -r line; do\n\
           case $line in *echo*) cd \"$5\"; @real send demo \"${line#ask demo: }\" >/dev/null ;; esac\n\
           echo \"$line\"\n\
         done | @real \"$@\"",
    );
    stage.misses(2, "once, but received it 2 times").await;
}

async fn step_3_a_remote_that_does_not_ask() {
    let rule = "[[rule]]\nname = \"book\"\nwhen = '^book (.+)$'\nsay = \"Booked $1.\"\n";
    Stage::with_rule("book", rule).misses(3, "an answer with w").await;
}

async fn step_3_an_answer_that_gets_lost() {
    let rule = "[[rule]]\nanswer_to = \"book\"\nsay = \"Booked $1 for some day.\"\n";
    Stage::with_rule("booked", rule).misses(3, "did not show an answer with w").await;
}

async fn step_4_a_file_with_something_else_in_it() {
    let rule = "[[rule]]\nwhen = '^report (.+)$'\nsay = \"Here: $1\"\nfile = { name = \"r.txt\", text = \"x\" }\n";
    Stage::with_rule("report", rule).misses(4, "does not contain w").await;
}

async fn step_4_no_file() {
    let rule = "[[rule]]\nwhen = '^report (.+)$'\nsay = \"Here: $1\"\n";
    Stage::with_rule("report", rule).misses(4, "did not show the saved file").await;
}

async fn step_5_a_task_that_is_not_long() {
    let rule = "[[rule]]\nwhen = '^slow (\\d+)s (.+)$'\nsay = \"done: $2\"\n";
    Stage::with_rule("slow", rule).misses(5, "that the result will come by itself").await;
}

async fn step_5_a_result_without_the_word() {
    let rule = "[[rule]]\nwhen = '^slow (\\d+)s (.+)$'\nafter = \"${1}s\"\nsay = \"done\"\n";
    Stage::with_rule("slow", rule).misses(5, "the remote did not finish its task").await;
}

async fn step_5_an_assistant_that_forgets_when_it_is_killed() {
    let mut stage = Stage::new();
    // Each chat has a home of its own, and the view in the workspace is gone, so nothing outlives a kill.
    stage.assistant = stage.script(
        "case $1 in chat) rm -f \"$5/.volcanic/a2a/pending.json\" ;; esac\n\
         export VOLCANIC_HOME=\"$VOLCANIC_HOME/$$\"; exec @real \"$@\"",
    );
    stage.misses(5, "did not show an answer with w").await;
}

async fn step_5_a_result_that_is_shown_twice() {
    let mut stage = Stage::new();
    stage.assistant = stage.script(
        "case $1 in chat) ;; *) exec @real \"$@\" ;; esac\n\
         if mkdir \"$VOLCANIC_HOME.once\" 2>/dev/null; then exec @real \"$@\"; fi\n\
         @real \"$@\" | while IFS= read -r line; do\n\
           echo \"$line\"; case $line in News*) echo \"$line\" ;; esac\n\
         done",
    );
    stage.misses(5, "shown once, but was shown 2 times").await;
}

async fn step_6_a_failure_that_is_told_as_a_success() {
    let rule = "[[rule]]\nwhen = '^fail (.+)$'\nsay = \"$1\"\n";
    Stage::with_rule("fail", rule).misses(6, "that the task failed").await;
}

async fn step_6_a_failure_without_its_reason() {
    let rule = "[[rule]]\nwhen = '^fail (.+)$'\nfail = \"no\"\n";
    Stage::with_rule("fail", rule).misses(6, "did not show an answer with w").await;
}

async fn step_7_an_assistant_that_nobody_can_reach() {
    let mut stage = Stage::new();
    stage.assistant = stage.script("unset A2A__PublicUrl; exec @real \"$@\"");
    stage.misses(7, "the remote was to push, but its task is followed by").await;
}

async fn step_7_an_agent_that_calls_somebody_else() {
    let mut stage = Stage::new();
    let nobody = nobody();
    let script = format!("export A2A__PublicUrl={}; exec @real \"$@\"", nobody.url);
    stage.assistant = stage.script(&script);
    stage.misses(7, "did not show an answer with w").await;
}

async fn step_8_a_question_that_comes_at_once() {
    let rule =
        "[[rule]]\nname = \"plan\"\nwhen = '^plan (\\d+)s (.+)$'\nask = \"Which day for $2?\"\n";
    Stage::with_rule("plan", rule).misses(8, "that the result will come by itself").await;
}

async fn step_8_a_question_about_something_else() {
    let rule = "[[rule]]\nname = \"plan\"\nwhen = '^plan (\\d+)s (.+)$'\nafter = \"${1}s\"\nask = \"Which day?\"\n";
    Stage::with_rule("plan", rule).misses(8, "did not show a question about w").await;
}

async fn step_8_an_outcome_that_comes_at_once() {
    let rule = "[[rule]]\nanswer_to = \"plan\"\nsay = \"Planned $2 for $answer.\"\n";
    Stage::with_rule("planned", rule).misses(8, "that the result will come by itself").await;
}

async fn step_8_an_answer_that_gets_lost() {
    let rule =
        "[[rule]]\nanswer_to = \"plan\"\nafter = \"${1}s\"\nsay = \"Planned $2 for some day.\"\n";
    Stage::with_rule("planned", rule).misses(8, "did not show an outcome with w").await;
}
