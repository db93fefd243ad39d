//! A person's terminal: a line that can be edited at the bottom, and everything else above it.

use std::{
    fmt, io,
    io::Write as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc as std_mpsc,
    },
    thread,
};

use futures::FutureExt as _;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use rustyline::{Config, Editor, ExternalPrinter, error::ReadlineError, history::MemHistory};
use tokio::{
    sync::{Notify, mpsc},
    task::spawn_blocking,
};

use crate::input::{Input, LINES};

mod flow;

use flow::Flow;

/// What the person types behind.
const PROMPT: &str = "> ";

/// Moves up a row and down again: shows nothing, and needs a row of ours above.
const NOTHING: &str = "\x1b[A\n";

/// Ends the mode in which terminals say where a paste begins and ends.
const PASTE_OFF: &str = "\x1b[?2004l";

/// Writes above the line that the person edits. The terminal is as it was once this is dropped.
pub(crate) struct Terminal {
    printer: Arc<Mutex<Box<dyn ExternalPrinter + Send>>>,
    /// How far the line has come that is being written.
    flow: Flow,
    asks: std_mpsc::SyncSender<()>,
    is_asking: Arc<AtomicBool>,
    /// Told when a line has been read.
    answered: Arc<Notify>,
    original: Termios,
}

impl Terminal {
    /// Takes the terminal, if standard input and output are one that can be edited on. What is said comes through the
    /// channel, line by line as it is asked for.
    pub(crate) fn open() -> Option<(Self, mpsc::Receiver<Input>)> {
        let original = tcgetattr(io::stdin()).ok()?;
        let mut editor =
            Editor::<(), MemHistory>::with_history(Config::default(), MemHistory::new()).ok()?;
        // There is none for a terminal without cursor movement, or when output goes elsewhere.
        let printer = editor.create_external_printer().ok()?;
        let printer = Arc::new(Mutex::new(Box::new(printer) as Box<dyn ExternalPrinter + Send>));
        // One, so that asking never blocks: there is no second question before an answer.
        let (asks, asked) = std_mpsc::sync_channel(1);
        let (sender, receiver) = mpsc::channel(LINES);
        let is_asking = Arc::new(AtomicBool::new(false));
        let answered = Arc::default();
        let (asking, answering) = (Arc::clone(&is_asking), Arc::clone(&answered));
        // Not joined, as nothing wakes a blocked read; it holds nothing but its ends of the channels.
        thread::spawn(move || read(editor, &asked, &sender, &asking, &answering));
        let flow = Flow::default();
        Some((Self { printer, flow, asks, is_asking, answered, original }, receiver))
    }

    /// Lets the person say the next thing.
    pub(crate) fn ask(&self) {
        self.forget_answer();
        // Full: it is being asked already. Gone: the input has ended, which is told by its channel.
        let _ = self.asks.try_send(());
    }

    /// Writes whole lines.
    pub(crate) async fn lines(&mut self, text: &str) -> io::Result<()> {
        self.flow.end();
        self.print(format!("{text}\n")).await
    }

    /// Writes the next piece of a text, right behind the piece before it.
    pub(crate) async fn piece(&mut self, text: &str) -> io::Result<()> {
        let columns = tcgetwinsize(io::stdout()).map_or(80, |size| size.ws_col);
        let text = self.flow.piece(text, usize::from(columns));
        self.print(text).await
    }

    /// Ends the text of which pieces were written.
    pub(crate) fn end_pieces(&mut self) {
        self.flow.end();
    }

    /// Returns when everything is on the screen. A piece that was printed is first handed to the thread that reads keys;
    /// when it has taken the second of two more, it is through with all before them.
    pub(crate) async fn settle(&self) -> io::Result<()> {
        self.print(NOTHING.to_owned()).await?;
        self.print(NOTHING.to_owned()).await
    }

    /// Takes no notice of a line that was read until now.
    fn forget_answer(&self) {
        let _ = self.answered.notified().now_or_never();
    }

    async fn print(&self, text: String) -> io::Result<()> {
        if !self.is_asking.load(Ordering::SeqCst) {
            // Nobody is in the way.
            self.forget_answer();
        }
        let printer = Arc::clone(&self.printer);
        // It waits while the person searches the history, for example.
        let mut printing = spawn_blocking(move || {
            printer.lock().unwrap_or_else(PoisonError::into_inner).print(text)
        });
        loop {
            tokio::select! {
                biased;
                printed = &mut printing => {
                    return printed.map_err(io::Error::other)?.map_err(io::Error::other);
                }
                // Keys come before what is to be printed, so a line may end while something is on its way to the thread that
                // read it. That takes no more before the next question, and whoever asks may be waiting right here.
                () = self.answered.notified() => self.ask(),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The thread is still in its read when the chat ends by a signal. If this fails the terminal is gone.
        if self.is_asking.load(Ordering::SeqCst) {
            let mut out = io::stdout();
            let _ = out.write_all(format!("{PASTE_OFF}\n").as_bytes()).and_then(|()| out.flush());
        }
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.original);
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("flow", &self.flow).finish_non_exhaustive()
    }
}

/// Reads a line for each question, until the input ends or nobody wants to know.
fn read(
    mut editor: Editor<(), MemHistory>,
    asked: &std_mpsc::Receiver<()>,
    sender: &mpsc::Sender<Input>,
    is_asking: &AtomicBool,
    answered: &Notify,
) {
    while asked.recv().is_ok() {
        is_asking.store(true, Ordering::SeqCst);
        let read = loop {
            match editor.readline(PROMPT) {
                // The window has another size now.
                Err(ReadlineError::Signal(_)) => {}
                read => break read,
            }
        };
        is_asking.store(false, Ordering::SeqCst);
        answered.notify_one();
        let said = match read {
            Ok(line) => {
                if !line.trim().is_empty() {
                    // Without a place in the history it is a line all the same.
                    let _ = editor.add_history_entry(line.as_str());
                }
                Input::of(line)
            }
            Err(ReadlineError::Interrupted) => Input::Interrupted,
            // Ctrl-D, or the terminal is gone.
            Err(_) => break,
        };
        if sender.blocking_send(said).is_err() {
            break;
        }
    }
}
