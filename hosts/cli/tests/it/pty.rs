//! A terminal in this process: what a person would see and press.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    num::NonZero,
    os::fd::OwnedFd,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::world::{SOON, VOLCANIC, World};

pub(crate) const COLUMNS: u16 = 60;
const ROWS: u16 = 24;

/// A chat on a terminal.
pub(crate) struct Pty {
    pub(crate) child: Child,
    keys: File,
    /// Kept, so that the terminal outlives the chat and can be looked at.
    terminal: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
}

impl Pty {
    /// Starts the chat with rules for its scripted model.
    pub(crate) fn chat(world: &World, rules: &Path, wait: u32) -> Self {
        Self::start(world, &["chat", "--model", &format!("scripted:{}", rules.display())], wait)
    }

    /// Starts a command; its assistant waits this many seconds for an agent.
    pub(crate) fn start(world: &World, arguments: &[&str], wait: u32) -> Self {
        Self::open(world, arguments, wait, |_| Stdio::inherit())
    }

    /// Starts a command that has nothing but the terminal, for its errors as well.
    pub(crate) fn all(world: &World, arguments: &[&str]) -> Self {
        Self::open(world, arguments, 60, |terminal| Stdio::from(terminal.try_clone().unwrap()))
    }

    fn open(
        world: &World,
        arguments: &[&str],
        wait: u32,
        errors: impl FnOnce(&OwnedFd) -> Stdio,
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();

        let before = tcgetattr(&terminal).unwrap();
        let child = Command::new(VOLCANIC)
            .args(arguments)
            .env_clear()
            .env("TERM", "xterm")
            .env("VOLCANIC_HOME", world.path("home"))
            .env("A2AClient__WaitSeconds", wait.to_string())
            .current_dir(world.workspace())
            .stdin(Stdio::from(terminal.try_clone().unwrap()))
            .stdout(Stdio::from(terminal.try_clone().unwrap()))
            .stderr(errors(&terminal))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let size = |cells| NonZero::new(cells).unwrap();
        let screen = vt100::Parser::new(size(ROWS), size(COLUMNS), 0);
        let seen = Arc::new(Mutex::new(Seen { screen, raw: Vec::new() }));
        let keys = File::from(master);
        let mut output = keys.try_clone().unwrap();
        let writing = Arc::clone(&seen);
        // Ends with the process: the terminal is held open here.
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                let mut seen = writing.lock().unwrap();
                seen.screen.process(&buffer[..read]);
                seen.raw.extend_from_slice(&buffer[..read]);
            }
        });
        Self { child, keys, terminal, before, seen }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The rows of the screen that are not empty.
    pub(crate) fn rows(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let rows = seen.screen.screen().rows(0, COLUMNS);
        rows.map(|row| row.trim_end().to_owned()).filter(|row| !row.is_empty()).collect()
    }

    /// Everything that was ever written to the terminal.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().raw).into_owned()
    }

    /// Waits until the screen is as wanted, and returns it.
    pub(crate) async fn until(&self, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let waited = timeout(SOON, async {
            loop {
                let rows = self.rows();
                if wanted(&rows) {
                    return rows;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("the screen is {:#?}", self.rows()))
    }

    /// Waits until everything that was ever written is as wanted.
    pub(crate) async fn until_raw(&self, wanted: impl Fn(&str) -> bool) {
        self.until(|_| wanted(&self.raw())).await;
    }

    /// Waits for a row.
    pub(crate) async fn shows(&self, row: &str) -> Vec<String> {
        self.until(|rows| rows.iter().any(|shown| shown == row)).await
    }

    /// Waits for the end of the chat, and checks that it left the terminal as it was.
    pub(crate) async fn ended_well(mut self) {
        let status = timeout(SOON, self.child.wait()).await.expect("it did not end").unwrap();
        assert!(status.success(), "{status}: {:#?}", self.rows());
        assert!(!self.is_editing(), "the terminal is left as it was while editing");
        // What it wrote last may still be on its way to us.
        let pastes = |how| self.raw().matches(how).count();
        self.until(|_| pastes("\x1b[?2004l") >= pastes("\x1b[?2004h")).await;
    }

    /// Whether the terminal is set otherwise than before the chat.
    pub(crate) fn is_editing(&self) -> bool {
        let now = tcgetattr(&self.terminal).unwrap();
        now.input_modes != self.before.input_modes
            || now.output_modes != self.before.output_modes
            || now.local_modes != self.before.local_modes
    }
}
