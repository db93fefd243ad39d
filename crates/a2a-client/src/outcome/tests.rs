use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use volcanic_a2a_types::{Role, TaskStatus};
use volcanic_base::{ConfineError, ConfinedDir, Secret};

use super::*;

const MAX: u64 = 100;

fn task(state: TaskState, said: &str, artifacts: Vec<Artifact>) -> Task {
    let mut status = TaskStatus::new(state);
    if !said.is_empty() {
        status = status.with_message(Message::new("m", Role::Agent, vec![Part::text(said)]));
    }
    let mut task = Task::new("t1", "c1", status);
    task.artifacts = artifacts;
    task
}

fn artifact(id: &str, parts: Vec<Part>) -> Artifact {
    Artifact::new(id, parts)
}

fn text(id: &str, text: &str) -> Artifact {
    artifact(id, vec![Part::text(text)])
}

#[track_caller]
fn check_answer(task: Task, expected: &str) {
    assert_eq!(TaskOutcome::from_task(task, MAX).answer, expected);
}

#[test]
fn answer_is_the_response_artifact() {
    let named = text("other", "by name").with_name("response");
    let artifacts = vec![text("notes", "notes"), text("response", "by id"), named];
    check_answer(task(TaskState::Completed, "status", artifacts), "by id\nby name");
}

#[test]
fn without_a_response_every_artifact_answers() {
    let artifacts = vec![text("a", "one\n"), artifact("b", vec![Part::data(7)]), text("c", "two")];
    check_answer(task(TaskState::Completed, "status", artifacts), "one\n7\ntwo");
}

#[test]
fn without_artifacts_the_status_message_answers() {
    check_answer(task(TaskState::Completed, "status", vec![text("response", " ")]), "status");
    check_answer(task(TaskState::Completed, "", vec![]), "");
}

#[test]
fn chunks_of_an_artifact_are_put_together_without_a_break() {
    let chunks =
        artifact("response", vec![Part::text("hel"), Part::text("lo "), Part::text("you")]);
    check_answer(task(TaskState::Completed, "", vec![chunks]), "hello you");
}

#[test]
fn question_comes_before_what_was_made() {
    let made = vec![text("response", "draft")];
    let outcome = TaskOutcome::from_task(task(TaskState::InputRequired, "Which day?", made), MAX);
    assert_eq!((outcome.question, outcome.answer.as_str()), (true, "Which day?\ndraft"));
}

#[test]
fn failure_tells_what_was_made_and_why_it_failed() {
    let made = || vec![text("response", "half")];
    check_answer(task(TaskState::Failed, "broke", made()), "half\nbroke");
    check_answer(task(TaskState::Failed, "half", made()), "half");
    check_answer(task(TaskState::Canceled, "status", made()), "half");
}

#[test]
fn unsettled_task_tells_its_status() {
    let outcome = TaskOutcome::from_task(task(TaskState::Working, "half way", vec![]), MAX);
    assert_eq!((outcome.question, outcome.answer.as_str()), (false, "half way"));
}

#[test]
fn files_links_and_what_is_too_large_are_told_apart() {
    let parts = vec![
        Part::raw(vec![1; 100], "image/png", "fits.png"),
        Part::raw(vec![1; 101], "image/png", "large.png"),
        Part::url("https://x.example/f"),
        Part::new(PartContent::Raw(Bytes::from_static(b"x"))),
    ];
    let task = task(TaskState::Completed, "", vec![artifact("a", parts).with_name("plan")]);
    let outcome = TaskOutcome::from_task(task, MAX);
    let names: Vec<_> = outcome.files.iter().map(|file| file.name.as_deref()).collect();
    assert_eq!(names, [Some("fits.png"), Some("plan")]);
    assert_eq!(outcome.skipped, ["large.png"]);
    assert_eq!(outcome.links, ["https://x.example/f"]);
}

#[test]
fn part_that_cannot_be_read_is_counted_and_the_rest_told() {
    let json = r#"{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[
        {}, {"text":"done"}, {"raw":"@@@","filename":"a.pdf"}, {"stream":"s"}]}]}"#;
    let outcome = TaskOutcome::from_task(serde_json::from_str(json).unwrap(), MAX);
    assert_eq!((outcome.answer.as_str(), outcome.unreadable), ("done", 2));
}

#[test]
fn many_texts_are_put_together_in_linear_time() {
    let artifacts = (0..200_000).map(|n| text(&format!("a{n}"), &format!("{n}"))).collect();
    let outcome = TaskOutcome::from_task(task(TaskState::Completed, "", artifacts), MAX);
    assert_eq!(outcome.answer.lines().count(), 200_000);
}

#[test]
fn only_the_first_twenty_files_are_taken() {
    let parts = (0..50).map(|n| Part::raw(vec![0], "text/plain", format!("{n}.txt"))).collect();
    let outcome =
        TaskOutcome::from_task(task(TaskState::Completed, "", vec![artifact("a", parts)]), MAX);
    assert_eq!((outcome.files.len(), outcome.more_files), (MAX_FILES, 30));
    assert_eq!(outcome.files[19].name.as_deref(), Some("19.txt"));
}

#[test]
fn reply_without_a_task_has_text_files_and_links() {
    let parts = vec![
        Part::text("one"),
        Part::data(serde_json::json!({"a": null})),
        Part::text("two"),
        Part::raw(vec![0], "text/plain", "a.txt"),
        Part::url("https://x.example/"),
    ];
    let message = Message::agent("m", parts).with_context("c1");
    let outcome = TaskOutcome::from_message(message, MAX);
    assert_eq!(outcome.answer, "one\n{\"a\":null}\ntwo");
    assert_eq!((outcome.files.len(), outcome.links.len()), (1, 1));
    assert_eq!((outcome.task_id, outcome.context_id), (None, Some(ContextId::from("c1"))));
}

#[test]
fn links_beyond_the_first_twenty_are_counted_with_those_that_were_not_read() {
    let parts = (0..50).map(|n| Part::url(format!("https://x.example/{n}"))).collect();
    let mut made = artifact("a", parts);
    made.omitted.links = 7;
    let outcome = TaskOutcome::from_task(task(TaskState::Completed, "", vec![made]), MAX);
    assert_eq!((outcome.links.len(), outcome.more_links), (20, 37));
    let (_folder, workspace) = workspace();
    assert_eq!(outcome.save(&workspace, "x").more_links, 37);
}

#[test]
fn link_is_kept_as_far_as_anybody_reads_it() {
    let made = artifact("a", vec![Part::url(format!("https://x.example/{}", "é".repeat(100_000)))]);
    let outcome = TaskOutcome::from_task(task(TaskState::Completed, "", vec![made]), MAX);
    let outcome = outcome.masked(&Scrubber::new(Vec::new()));
    assert!((10_000..=16 << 10).contains(&outcome.links[0].len()), "{}", outcome.links[0].len());
}

#[test]
fn the_only_text_is_the_answer_without_a_copy() {
    let long = "x".repeat(1 << 20);
    let at = long.as_ptr();
    let made = artifact("a", vec![Part::text(long), Part::url("u")]);
    let outcome = TaskOutcome::from_task(task(TaskState::Completed, "", vec![made]), MAX);
    assert_eq!(outcome.answer.as_ptr(), at);
    let outcome = outcome.masked(&Scrubber::new(vec![Secret::new("planted-key")]));
    assert_eq!(outcome.answer.as_ptr(), at);
}

fn workspace() -> (tempfile::TempDir, ConfinedDir) {
    let folder = tempfile::tempdir().unwrap();
    let workspace = ConfinedDir::open(folder.path()).unwrap();
    (folder, workspace)
}

fn with_files(files: &[(&str, &str)]) -> TaskOutcome {
    let parts =
        files.iter().map(|(name, text)| Part::raw(text.as_bytes().to_vec(), "text/plain", *name));
    let parts = parts.collect();
    TaskOutcome::from_task(task(TaskState::Completed, "", vec![artifact("a", parts)]), MAX)
}

#[test]
fn files_go_to_the_agents_inbox_for_the_owner_alone() {
    let (folder, workspace) = workspace();
    let saved = with_files(&[("../../plan.txt", "hello")]).save(&workspace, "travel-bot");
    assert_eq!(saved.saved, ["inbox/a2a/travel-bot/plan.txt"]);
    let path = folder.path().join(&saved.saved[0]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "hello");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn taken_names_get_a_number_and_nothing_is_overwritten() {
    let (folder, workspace) = workspace();
    let first = with_files(&[("a.txt", "1"), ("a.txt", "2"), ("A.TXT", "3")]);
    let saved = first.save(&workspace, "x");
    assert_eq!(saved.saved, ["inbox/a2a/x/a.txt", "inbox/a2a/x/a-2.txt", "inbox/a2a/x/A-3.TXT"]);
    let saved = with_files(&[("a.txt", "4")]).save(&workspace, "x");
    assert_eq!(saved.saved, ["inbox/a2a/x/a-4.txt"]);
    for (name, content) in [("a.txt", "1"), ("a-2.txt", "2"), ("A-3.TXT", "3"), ("a-4.txt", "4")] {
        let path = folder.path().join("inbox/a2a/x").join(name);
        assert_eq!(fs::read_to_string(path).unwrap(), content);
    }
}

#[test]
fn saving_again_leaves_no_second_copy() {
    let (folder, workspace) = workspace();
    let outcome = with_files(&[("a.txt", "1"), ("a.txt", "2")]);
    let first = outcome.save(&workspace, "x");
    assert_eq!(outcome.save(&workspace, "x"), first);
    assert_eq!(fs::read_dir(folder.path().join("inbox/a2a/x")).unwrap().count(), 2);
}

#[test]
fn link_in_place_of_a_file_or_folder_leads_nowhere() {
    let ((folder, workspace), outside) = (workspace(), tempfile::tempdir().unwrap());
    fs::create_dir_all(folder.path().join("inbox/a2a/x")).unwrap();
    symlink(outside.path().join("stolen.txt"), folder.path().join("inbox/a2a/x/a.txt")).unwrap();
    let saved = with_files(&[("a.txt", "1")]).save(&workspace, "x");
    assert_eq!(saved.saved, ["inbox/a2a/x/a-2.txt"]);
    symlink(outside.path(), folder.path().join("inbox/a2a/y")).unwrap();
    let saved = with_files(&[("a.txt", "1")]).save(&workspace, "y");
    check_unsaved(&saved, &["a.txt"], "`inbox/a2a/y` leads outside the directory");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// Nothing is saved, for one reason that will not pass.
#[track_caller]
fn check_unsaved(saved: &SavedOutcome, names: &[&str], reason: &str) {
    assert_eq!((&saved.saved, &saved.answer_file), (&vec![], &None));
    let expected: Vec<_> = names
        .iter()
        .map(|name| UnsavedFile {
            name: (*name).to_owned(),
            reason: reason.to_owned(),
            may_pass: false,
        })
        .collect();
    assert_eq!(saved.unsaved, expected);
    assert_eq!(saved.passing_failure(), None);
}

/// A task with two files and a text that is too long to be told in place.
fn long_with_files() -> TaskOutcome {
    let mut outcome = with_files(&[("a.txt", "1"), ("../b.txt", "2")]);
    outcome.answer = "one\ntwo".to_owned();
    outcome.inline_bytes = 4;
    outcome
}

#[test]
fn text_is_there_and_files_are_named_when_something_else_is_where_the_inbox_should_be() {
    let names = ["answer.txt", "a.txt", "b.txt"];
    for (place, reason) in [
        ("inbox", "`inbox` is not a directory"),
        ("inbox/a2a", "`inbox/a2a` is not a directory"),
        ("inbox/a2a/x", "`inbox/a2a/x` is not a directory"),
    ] {
        let (folder, workspace) = workspace();
        let place = folder.path().join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "mine").unwrap();
        let saved = long_with_files().save(&workspace, "x");
        check_unsaved(&saved, &names, reason);
        assert_eq!((saved.answer.as_str(), saved.is_cut), ("one", true));
        assert_eq!(fs::read_to_string(&place).unwrap(), "mine");
        // Once that is mended, saving again saves all.
        fs::remove_file(&place).unwrap();
        let saved = long_with_files().save(&workspace, "x");
        assert_eq!((saved.saved.len(), saved.unsaved.len()), (2, 0));
        assert_eq!(saved.answer_file.as_deref(), Some("inbox/a2a/x/answer.txt"));
    }
}

#[test]
fn outcome_without_a_workspace_keeps_its_text() {
    let gone = tempfile::tempdir().unwrap().path().join("gone");
    let error = ConfinedDir::open(&gone).unwrap_err();
    let saved = long_with_files().save_nothing(&error);
    let reason = format!("`{}` does not exist", gone.display());
    check_unsaved(&saved, &["answer.txt", "a.txt", "b.txt"], &reason);
    let plain = TaskOutcome::from_task(task(TaskState::Completed, "done", vec![]), MAX);
    let (_folder, workspace) = workspace();
    assert_eq!(plain.save_nothing(&error), plain.save(&workspace, "x"));
}

#[test]
fn one_file_that_cannot_be_saved_does_not_take_the_others_away() {
    let (folder, workspace) = workspace();
    let inbox = folder.path().join("inbox/a2a/x");
    fs::create_dir_all(&inbox).unwrap();
    // Every name that it could have is taken.
    for number in 1..=10_000 {
        let name = if number == 1 { "a.txt".to_owned() } else { format!("a-{number}.txt") };
        symlink("nowhere", inbox.join(name)).unwrap();
    }
    let saved = with_files(&[("b.txt", "1"), ("a.txt", "2"), ("c.txt", "3")]).save(&workspace, "x");
    assert_eq!(saved.saved, ["inbox/a2a/x/b.txt", "inbox/a2a/x/c.txt"]);
    let [unsaved] = saved.unsaved.as_slice() else { panic!("{:?}", saved.unsaved) };
    assert_eq!(
        (unsaved.name.as_str(), unsaved.reason.as_str()),
        ("a.txt", "too many files have the same name")
    );
}

#[test]
fn only_what_may_pass_by_itself_is_worth_another_try() {
    use std::io::ErrorKind;
    let unsaved = |kind: ErrorKind| {
        let path = "a.txt".into();
        let error = ConfineError::Io { path, source: kind.into() };
        with_files(&[("a.txt", "1")]).save_nothing(&error)
    };
    for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::Other] {
        let saved = unsaved(kind);
        let reason = saved.passing_failure().unwrap();
        assert!(reason.starts_with("failed to access `a.txt`: "), "{reason}");
    }
    for kind in [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied] {
        assert_eq!(unsaved(kind).passing_failure(), None, "{kind}");
    }
    let mut mixed = unsaved(ErrorKind::StorageFull);
    mixed.unsaved.extend(unsaved(ErrorKind::ReadOnlyFilesystem).unsaved);
    assert_eq!(mixed.passing_failure(), None);
}

#[test]
fn what_a_killed_process_left_of_a_file_is_removed() {
    let (folder, workspace) = workspace();
    let inbox = folder.path().join("inbox/a2a/x");
    fs::create_dir_all(&inbox).unwrap();
    fs::write(inbox.join(".a.txt.1-0.volcanic-tmp"), "hal").unwrap();
    let saved = with_files(&[("a.txt", "half")]).save(&workspace, "x");
    assert_eq!(saved.saved, ["inbox/a2a/x/a.txt"]);
    assert_eq!(fs::read_dir(inbox).unwrap().count(), 1);
}

#[test]
fn outcome_without_files_writes_nothing() {
    let (folder, workspace) = workspace();
    let outcome = TaskOutcome::from_task(task(TaskState::Completed, "done", vec![]), MAX);
    outcome.save(&workspace, "x");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[track_caller]
fn check_long(answer: &str, inline_bytes: usize, shown: &str) {
    let (folder, workspace) = workspace();
    let task = task(TaskState::Completed, "", vec![text("response", answer)]);
    let mut outcome = TaskOutcome::from_task(task, MAX);
    outcome.inline_bytes = inline_bytes;
    let saved = outcome.save(&workspace, "x");
    assert_eq!(saved.answer, shown);
    let path = folder.path().join(saved.answer_file.unwrap());
    assert_eq!(fs::read_to_string(path).unwrap(), answer);
}

#[test]
fn long_answer_goes_to_a_file_whole_and_is_told_in_part() {
    check_long("one\ntwo\nthree", 9, "one\ntwo");
    check_long("ééééé", 5, "éé");
    let lines = "x\n".repeat(MAX_INLINE_LINES + 1);
    check_long(&lines, MAX_INLINE_BYTES, "x\n".repeat(MAX_INLINE_LINES).trim_end());
}

#[test]
fn answer_at_the_limit_stays_in_place() {
    let (_folder, workspace) = workspace();
    for answer in ["x\n".repeat(MAX_INLINE_LINES), "y".repeat(MAX_INLINE_BYTES)] {
        let task = task(TaskState::Completed, "", vec![text("response", &answer)]);
        let saved = TaskOutcome::from_task(task, MAX).save(&workspace, "x");
        assert_eq!((saved.answer_file, saved.answer.as_str()), (None, answer.trim_end()));
    }
}
