//! A child process that is spoken to line by line, with a time limit on every exchange.
//!
//! What is here: starting, sending a line, receiving one, noticing the end, killing. What is not here: what the lines
//! mean. No threads: the pipes do not block, and one `poll` waits for all three.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::ExternalConfig;

/// Bytes of standard error that are kept, for messages.
const LAST_WORDS: usize = 2000;
/// How long a process may take to exit once its input is closed.
const FAREWELL: Duration = Duration::from_millis(500);

/// Why a process is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// No complete reply came in time.
    #[error("did not answer within {0:?}")]
    Timeout(Duration),
    /// The process has ended or closed its output.
    #[error("{0}")]
    Exited(String),
    /// The reply is longer than allowed.
    #[error("sent a reply of more than {0} bytes (setting `max_reply_bytes`)")]
    TooLong(usize),
    /// What it sent is no reply to what it was asked.
    #[error("{0}")]
    Garbage(String),
    /// The pipe failed.
    #[error("its pipe failed: {0}")]
    Pipe(std::io::Error),
}

/// A running child process. Dropping it ends the process, and whatever that has started.
pub(super) struct Process {
    child: Child,
    /// `None` once closed.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// `None` once closed by the process.
    stderr: Option<ChildStderr>,
    /// Bytes received and not yet handed out.
    received: Vec<u8>,
    /// The end of what it wrote to standard error.
    last_words: Vec<u8>,
    max_line: usize,
}

impl Process {
    /// Starts the program.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn start(config: &ExternalConfig) -> std::io::Result<Self> {
        let (program, arguments) = config.command.split_first().ok_or(ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env("PYTHONHASHSEED", "0").envs(&config.env);
        if let Some(folder) = &config.working_dir {
            command.current_dir(folder);
        }
        // A group of its own: an interrupt from the terminal is the trainer's to deal with, and the group can be killed
        // as a whole.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(ErrorKind::BrokenPipe.into());
        };
        let process = Self {
            child,
            stdin: Some(stdin),
            stdout,
            stderr: Some(stderr),
            received: Vec::new(),
            last_words: Vec::new(),
            max_line: config.max_reply_bytes,
        };
        if let (Some(stdin), Some(stderr)) = (&process.stdin, &process.stderr) {
            rustix::io::ioctl_fionbio(stdin, true)?;
            rustix::io::ioctl_fionbio(&process.stdout, true)?;
            rustix::io::ioctl_fionbio(stderr, true)?;
        }
        Ok(process)
    }

    /// Nothing has come that was not asked for, and the process still runs.
    pub fn check_quiet(&mut self) -> Result<(), Broken> {
        if self.received.is_empty() {
            self.fill()?;
        }
        if self.received.is_empty() {
            return Ok(());
        }
        Err(Broken::Garbage(format!("wrote without being asked: {}", excerpt(&self.received))))
    }

    /// Sends a line and waits for one, without its line break.
    pub fn exchange(&mut self, line: &[u8], limit: Duration) -> Result<Vec<u8>, Broken> {
        let deadline = Instant::now() + limit;
        let mut unsent = line;
        loop {
            self.send(&mut unsent)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Broken::Timeout(limit));
            }
            self.wait(!unsent.is_empty(), left)?;
            self.fill()?;
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                if end > self.max_line {
                    return Err(Broken::TooLong(self.max_line));
                }
                let mut line: Vec<u8> = self.received.drain(..=end).collect();
                line.pop();
                return Ok(line);
            }
            if self.received.len() > self.max_line {
                return Err(Broken::TooLong(self.max_line));
            }
        }
    }

    /// Writes as much as the pipe takes.
    fn send(&mut self, unsent: &mut &[u8]) -> Result<(), Broken> {
        while !unsent.is_empty() {
            let Some(stdin) = self.stdin.as_mut() else {
                return Err(Broken::Pipe(ErrorKind::BrokenPipe.into()));
            };
            match stdin.write(unsent) {
                Ok(n) => *unsent = unsent.get(n..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(self.ended()),
                Err(error) => return Err(Broken::Pipe(error)),
            }
        }
        Ok(())
    }

    /// Waits until a pipe can be read (or written), or the time is over; keeps what comes on standard error.
    fn wait(&mut self, to_send: bool, limit: Duration) -> Result<(), Broken> {
        let mut fds = vec![PollFd::new(&self.stdout, PollFlags::IN)];
        if let Some(stderr) = &self.stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| to_send) {
            fds.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::OUT));
        }
        let limit = Timespec::try_from(limit).ok();
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Broken::Pipe(error.into())),
        }
        let words = self.stderr.is_some() && fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if words {
            self.listen();
        }
        Ok(())
    }

    /// Takes from the process's output what is there, up to a line break or a little beyond the longest line allowed.
    fn fill(&mut self) -> Result<(), Broken> {
        let mut chunk = [0; 8192];
        loop {
            match self.stdout.read(&mut chunk) {
                Ok(0) => return Err(self.ended()),
                Ok(n) => {
                    let new = chunk.get(..n).unwrap_or_default();
                    self.received.extend_from_slice(new);
                    if new.contains(&b'\n') || self.received.len() > self.max_line {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Broken::Pipe(error)),
            }
        }
    }

    /// Keeps the end of what is on standard error. Bounded, so that a process that never stops writing holds nobody up.
    fn listen(&mut self) {
        let mut chunk = [0; 4096];
        for _ in 0..64 {
            match self.stderr.as_mut().map(|stderr| stderr.read(&mut chunk)) {
                Some(Ok(0)) => self.stderr = None,
                Some(Ok(n)) => {
                    self.last_words.extend_from_slice(chunk.get(..n).unwrap_or_default());
                    let surplus = self.last_words.len().saturating_sub(LAST_WORDS);
                    self.last_words.drain(..surplus);
                }
                Some(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => return,
                Some(Err(_)) | None => return,
            }
        }
    }

    /// How the process ended, with its last words.
    fn ended(&mut self) -> Broken {
        let status = self.exit_within(FAREWELL);
        self.listen();
        let mut message = match status {
            Some(status) => format!("ended ({status})"),
            None => "closed its standard output".to_owned(),
        };
        let words = String::from_utf8_lossy(&self.last_words);
        if !words.trim().is_empty() {
            message.push_str("; its standard error ends with: ");
            message.push_str(words.trim());
        }
        Broken::Exited(message)
    }

    fn exit_within(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_micros(200);
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Ends the process at once, with all it has started.
    pub fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // No group means that it is gone.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            self.exit_within(FAREWELL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input tells a process to exit.
        self.stdin = None;
        if self.exit_within(FAREWELL).is_none() {
            self.kill();
        }
    }
}

/// The beginning of what was received, readable and short.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(200)).unwrap_or_default());
    let mut quoted = format!("{text:?}");
    if bytes.len() > 200 {
        quoted.push('…');
    }
    quoted
}
