//! Programs of the bench, spoken to line by line.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

/// A program that answers each line with one; it ends with this.
pub(super) struct Talk {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Talk {
    pub(super) fn start(program: &mut Command) -> Result<Self> {
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("failed to start {}", program.get_program().display()))?;
        let orders = child.stdin.take();
        let answers = child.stdout.take().context("no output")?;
        Ok(Self { child, orders, answers: BufReader::new(answers) })
    }

    pub(super) fn ask(&mut self, order: &str) -> Result<String> {
        let orders = self.orders.as_mut().context("no input")?;
        writeln!(orders, "{order}")?;
        orders.flush()?;
        self.read()
    }

    pub(super) fn read(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("a program of the bench has ended; its output says why");
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Each of them ends with its input.
        self.orders = None;
        let _ = self.child.wait();
    }
}
