//! What a person attaches that is no file of the workspace, or too much: refused at once, and nobody is asked.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use tokio::task::spawn_blocking;
use volcanic_testkit::{HostileAgent, HostileTrick, Measured};

use crate::scene::Scene;

/// How long a refusal may take.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Attaches files, and checks that nobody was asked.
async fn refused(scene: &Scene, files: &[&str]) -> Measured {
    let agent = HostileAgent::start(HostileTrick::None).await.unwrap();
    scene.knows(agent.url(), true);
    let mut arguments = vec!["send", "demo", "plum"];
    for file in files {
        arguments.extend(["--file", file]);
    }
    let ran = scene.run(&arguments, &[]).await;
    assert_eq!(ran.code, Some(2), "{files:?}: {ran:?}");
    assert!(ran.took < AT_ONCE, "{files:?}: {ran:?}");
    assert!(ran.peak < 128 << 20, "{files:?}: {} MiB", ran.peak >> 20);
    assert_eq!(agent.asked(), Vec::<String>::new(), "{files:?}: {ran:?}");
    ran
}

async fn check(scene: &Scene, file: &str, told: &str) {
    let ran = refused(scene, &[file]).await;
    assert!(ran.err.contains(told), "{file}: {ran:?}");
    assert!(!ran.err.contains("untouched"), "{file}: {ran:?}");
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_without_waiting() {
    let scene = Scene::new();
    fifo(&scene.path("workspace/pipe"));
    let _socket = UnixListener::bind(scene.path("workspace/socket")).unwrap();
    symlink("pipe", scene.path("workspace/to-pipe")).unwrap();
    for file in ["pipe", "to-pipe", "socket", "inbox"] {
        check(&scene, file, "is not a regular file").await;
    }
    check(&scene, "gone", "does not exist").await;
}

#[tokio::test]
async fn what_lies_outside_is_refused_however_it_is_named() {
    let scene = Scene::new();
    let outside = scene.path("canary");
    symlink(&outside, scene.path("workspace/link")).unwrap();
    symlink("../canary", scene.path("workspace/short-link")).unwrap();
    symlink(scene.path(""), scene.path("workspace/door")).unwrap();
    symlink("loop", scene.path("workspace/loop")).unwrap();
    symlink("/dev/zero", scene.path("workspace/zero")).unwrap();
    symlink("/proc/self/environ", scene.path("workspace/environ")).unwrap();
    for file in [
        outside.to_str().unwrap(),
        "../canary",
        "inbox/../../canary",
        "link",
        "short-link",
        "door/canary",
        "loop",
        "zero",
        "environ",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/environ",
    ] {
        check(&scene, file, "leads outside the directory").await;
    }
    for file in [".volcanic/a2a/agents.json", "./.volcanic/a2a/agents.json"] {
        check(&scene, file, "are not sent to agents").await;
    }
}

#[tokio::test]
async fn files_that_are_too_large_alone_or_together_are_refused() {
    let scene = Scene::new();
    let sparse = |name: &str, size: u64| {
        fs::File::create(scene.path(name)).unwrap().set_len(size).unwrap();
    };
    sparse("workspace/terabyte", 1 << 40);
    sparse("workspace/six", 6 << 20);
    sparse("workspace/five", 5 << 20);
    for files in [&["terabyte"][..], &["six", "five"], &["six", "six", "six"]] {
        let ran = refused(&scene, files).await;
        assert!(ran.err.contains("they are larger than 10485760 bytes"), "{ran:?}");
    }
}

/// While a link to the outside and a file change places as fast as they can, what is sent is the file or nothing.
#[tokio::test]
async fn a_file_that_is_swapped_for_a_link_sends_nothing_from_outside() {
    let scene = Scene::new();
    scene.write("workspace/plan.txt", "the plan");
    symlink("../canary", scene.path("workspace/trap")).unwrap();
    let agent = HostileAgent::start(HostileTrick::None).await.unwrap();
    scene.knows(agent.url(), true);
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = spawn_blocking({
        let (plan, trap) = (scene.path("workspace/plan.txt"), scene.path("workspace/trap"));
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &plan, CWD, &trap, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let (mut sent, mut refused) = (0, 0);
    for _ in 0..40 {
        let ran = scene.run(&["send", "demo", "plum", "--file", "plan.txt"], &[]).await;
        match ran.code {
            Some(0) => sent += 1,
            Some(2) => refused += 1,
            code => panic!("{code:?}: {ran:?}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapping.await.unwrap();
    let heard = format!("{:?}", agent.heard());
    // `untouched` in base64, as it would stand in a message.
    assert!(!heard.contains("dW50b3VjaGVk") && !heard.contains("untouched"), "{heard}");
    assert_eq!(heard.matches("dGhlIHBsYW4=").count(), sent, "{heard}");
    assert!(sent > 0 && refused > 0, "the race was not run: {sent} sent, {refused} refused");
}
