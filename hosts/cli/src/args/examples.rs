//! Examples at the end of the help texts.

pub(super) const ALL: &str = "Examples:
  volcanic demo                                  see everything happen, without a token or a key
  volcanic chat --model openai:gpt-5             talk to the assistant (OPENAI_API_KEY is set)
  volcanic agents                                who may be called from this folder
  volcanic send travel-bot 'Rome in May' --wait 2m
  volcanic send http://localhost:5099/ hello     an agent by its address

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 agent unreachable, 4 key refused, 5 not done in time,
6 the agent asks something.
The conversation is kept in VOLCANIC_HOME (~/.volcanic), outside of the workspace. Into the workspace go received files
(inbox/a2a/), what the assistant's tools write, .volcanic/a2a/pending.json while tasks are followed, and with `serve` its
tasks (.volcanic/a2a/tasks/).";

pub(super) const CHAT: &str = "Examples:
  volcanic chat                                  a scripted assistant that knows a few phrases (say help)
  volcanic chat --workspace ~/assistant --model openai:gpt-5
  OPENAI_BASE_URL=http://localhost:11434/v1 volcanic chat --model openai:llama3.2
  echo 'ask travel-bot: Rome in May' | volcanic chat

In the chat: /a2a agents and followed tasks, /status, /stop, /new, /help, /quit. On a terminal, Ctrl-C stops what the
assistant is doing and Ctrl-D leaves. Tasks that it follows are taken up again at the next start.
The assistant's file tools stay in the workspace. Its shell only starts there: it may do whatever you may.
A workspace has one chat that follows tasks; a second one at the same time gets a conversation of its own, without agents.

Settings: A2AClient__WaitSeconds (60) before a task is followed in the background, A2AClient__WatchTimeout (1d),
A2AClient__CardTimeoutSeconds (10), A2AClient__MaxFileBytes (10MB), VOLCANIC_HOME, SSL_CERT_FILE, Ops__Log__Level; all but
VOLCANIC_HOME also in volcanic.toml in VOLCANIC_HOME, or in the file that --config names.";

pub(super) const AGENTS: &str = "The agents stand in <workspace>/.volcanic/a2a/agents.json:
  [{ \"name\": \"travel-bot\", \"url\": \"https://travel.example/\", \"key\": \"env:A2A_KEY_TRAVEL\" }]

Examples:
  volcanic agents
  volcanic agents --workspace ~/assistant --json

Exit codes: 0 also when agents cannot be reached (they are listed as such), 2 when agents.json cannot be read.";

pub(super) const SEND: &str = "Examples:
  volcanic send travel-bot 'Rome in May' --wait 2m
  volcanic send travel-bot 'what does this say?' --file notes/ticket.pdf
  volcanic send travel-bot Monday --task 5c1e2b      answer a question
  volcanic send travel-bot 'and a hotel' --context 7f20a1
  volcanic send https://agent.example/ hello --key-file ~/agent.key --json

Received files are saved to <workspace>/inbox/a2a/<agent>/. Ctrl-C stops waiting, not the task.

Exit codes: 0 completed, 1 failed, refused or canceled, 2 wrong usage, 3 unreachable, 4 key refused, 5 still working when
the time was up, 6 the agent asks something (answer with --task).";

pub(super) const STATUS: &str = "Examples:
  volcanic status travel-bot 5c1e2b
  volcanic status travel-bot 5c1e2b --wait 10m --json

Exit codes: 0 completed, 1 failed, refused or canceled, 2 wrong usage, 3 unreachable, 4 key refused, 5 still working, 6
the agent asks something.";

pub(super) const CANCEL: &str = "Examples:
  volcanic cancel travel-bot 5c1e2b

Exit codes: 0 canceled, 1 it cannot be canceled, 2 wrong usage, 3 unreachable, 4 key refused, 5 no answer in time or still
working.";

pub(super) const WATCHES: &str = "Examples:
  volcanic watches
  volcanic watches --workspace ~/assistant --json

In a workspace of the bot (VOLCANIC_HOME/telegram-workspaces/ID) the watches of that chat are shown.
The chat's state is only read, also while the chat runs. Nobody is asked: `status` asks the agent itself.";

pub(super) const SERVE: &str = "Examples:
  volcanic serve --scripted                          the demo's rules, at http://127.0.0.1:8080/
  volcanic serve --scripted rules.toml --listen 127.0.0.1:5099 --journal received.jsonl
  volcanic send http://127.0.0.1:8080/ 'echo hello'  from another terminal

A rules file has [[rule]] tables; the first whose `when` (a regular expression) fits the message decides:
  [[rule]]
  when = '(?i)^slow (.+)$'
  after = \"5s\"
  say = \"finished: $1\"
Outcomes are `say` and/or `file`, or one of `ask`, `fail`, `reject`, `reply`. Tasks are kept in
<workspace>/.volcanic/a2a/tasks/.";

pub(super) const DEMO: &str = "Examples:
  volcanic demo             on a terminal: a conversation with a remote agent beside it
  volcanic demo --tour      a tour that checks itself; also without a terminal

Exit codes: 0 everything happened, 1 something is missing (it is named). Everything is in a temporary folder.";
