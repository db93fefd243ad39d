//! Examples at the end of the help texts.

pub(super) const ALL: &str = "Examples:
  volcanic demo                                  see everything happen, without a token or a key
  volcanic chat --model openai:gpt-5             talk to the assistant (OPENAI_API_KEY is set)
  volcanic agents                                who may be called from this folder
  volcanic send travel-bot 'Rome in May' --wait 2m
  volcanic send http://localhost:5099/ hello     an agent by its address
  volcanic watch travel-bot 5c1e2b               follow a task to its end
  volcanic tasks travel-bot --json | jq .        everything can be had as JSON

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 agent unreachable, 4 key refused, 5 not done in time,
6 the agent asks something. With --json an error is {\"error\": {\"kind\": …, \"message\": …}} on standard output.
The conversation is kept in VOLCANIC_HOME (~/.volcanic), outside of the workspace. Into the workspace go received files
(inbox/a2a/), what the assistant's tools write, .volcanic/a2a/pending.json while tasks are followed, and with `serve` its
tasks (.volcanic/a2a/tasks/).";

pub(super) const CHAT: &str = "Examples:
  volcanic chat                                  a scripted assistant that knows a few phrases (say help)
  volcanic chat --workspace ~/assistant --model openai:gpt-5
  OPENAI_BASE_URL=http://localhost:11434/v1 volcanic chat --model openai:llama3.2
  echo 'ask travel-bot: Rome in May' | volcanic chat
  echo 'ask travel-bot: Rome in May' | volcanic chat --json      an {\"answer\": …} or {\"note\": …} on each line

In the chat: /a2a agents and followed tasks, /status, /stop, /new, /help, /quit. On a terminal, Ctrl-C stops what the
assistant is doing and Ctrl-D leaves. Tasks that it follows are taken up again at the next start.
The assistant's file tools stay in the workspace. Its shell only starts there: it may do whatever you may.
A workspace has one chat that follows tasks; a second one at the same time gets a conversation of its own, without agents.

Exit codes: 0 the input has ended, or somebody left; 1 the state or the screen cannot be used, or not all that was said
could be kept; 2 wrong usage, settings, model or workspace. What agents answer changes none of that.

Settings: A2AClient__WaitSeconds (60) before a task is followed in the background, A2AClient__WatchTimeout (1d),
A2AClient__CardTimeoutSeconds (10), A2AClient__MaxFileBytes (10MB), VOLCANIC_HOME, SSL_CERT_FILE, Ops__Log__Level; all but
VOLCANIC_HOME also in volcanic.toml in VOLCANIC_HOME, or in the file that --config names.";

pub(super) const AGENTS: &str = "The agents stand in <workspace>/.volcanic/a2a/agents.json:
  [{ \"name\": \"travel-bot\", \"url\": \"https://travel.example/\", \"key\": \"env:A2A_KEY_TRAVEL\" }]

Examples:
  volcanic agents
  volcanic agents --workspace ~/assistant --json

Exit codes: 0 also when agents cannot be reached (they are listed as such), 2 when agents.json cannot be read.";

pub(super) const CARD: &str = "Examples:
  volcanic card travel-bot                       also which interface is used, and why
  volcanic card https://agent.example/ --validate
  volcanic card ./agent-card.json --validate --json | jq .findings
  volcanic card travel-bot --extended            the card for authenticated callers
  generate-card | volcanic card - --validate     in a pipe, before it is published

A URL is that of the agent or, if it ends in .json, of the card. --validate names each fault with its place, how to mend it
and the section of the specification that it breaks; errors are what it forbids, warnings what is unlikely to be meant.

Exit codes: 0 shown, or valid (perhaps with warnings); 1 not valid, or there is no card that can be used; 2 wrong usage, 3
unreachable, 4 key refused, 5 no answer in time.";

pub(super) const SEND: &str = "Examples:
  volcanic send travel-bot 'Rome in May' --wait 2m
  volcanic send travel-bot 'what does this say?' --file notes/ticket.pdf
  volcanic send travel-bot 'book it' --data '{\"seats\": 2}' --url https://rome.example/map
  volcanic send travel-bot --data @order.json --media-type application/vnd.order+json
  echo 'a long text' | volcanic send travel-bot -
  volcanic send travel-bot Monday --task 5c1e2b      answer a question
  volcanic send travel-bot 'and a hotel' --context 7f20a1
  volcanic send travel-bot 'a long story' --stream   print what it reports while it works
  volcanic send travel-bot 'a long story' --async    leave at once; see `watch` and `status`
  volcanic send https://agent.example/ hello --key-env A2A_KEY_AGENT --json
  volcanic send http://localhost:9000/rpc hello --no-card --binding jsonrpc

Received files are saved to <workspace>/inbox/a2a/<agent>/, except with --json, which holds them. Ctrl-C stops waiting, not
the task.

Exit codes: 0 completed (with --async: the agent has it), 1 failed, refused or canceled, 2 wrong usage, 3 unreachable, 4 key
refused, 5 still working when the time was up, 6 the agent asks something (answer with --task).";

pub(super) const STATUS: &str = "Examples:
  volcanic status travel-bot 5c1e2b
  volcanic status travel-bot 5c1e2b --wait 10m --json
  volcanic status travel-bot 5c1e2b --history 10

Exit codes: 0 completed, 1 failed, refused or canceled, 2 wrong usage, 3 unreachable, 4 key refused, 5 still working, 6
the agent asks something.";

pub(super) const CANCEL: &str = "Examples:
  volcanic cancel travel-bot 5c1e2b

Exit codes: 0 canceled, 1 it cannot be canceled, 2 wrong usage, 3 unreachable, 4 key refused, 5 no answer in time or still
working.";

pub(super) const TASKS: &str = "Examples:
  volcanic tasks travel-bot
  volcanic tasks travel-bot --status input-required
  volcanic tasks travel-bot --context 7f20a1 --page-size 10
  volcanic tasks travel-bot --all --json

Exit codes: 0 listed, also when there are none; 1 the agent refused, 2 wrong usage, 3 unreachable, 4 key refused, 5 no
answer in time.";

pub(super) const SUBSCRIBE: &str = "Examples:
  volcanic subscribe travel-bot 5c1e2b
  volcanic subscribe travel-bot 5c1e2b --timeout 10m --json

Nothing is saved and nothing is asked for again: `watch` follows a task to its end, whatever happens to the stream. Agents
refuse it for a task that has ended, which `status` shows.

Exit codes: 0 the task completed, 1 it failed or the agent refused, 2 wrong usage, 3 unreachable, 4 key refused, 5 the
stream or the time ended before the task did, 6 the agent asks something.";

pub(super) const WATCH: &str = "Examples:
  volcanic watch travel-bot 5c1e2b
  volcanic watch travel-bot 5c1e2b --timeout 30m --json

Listens to the agent if it streams, asks it else, and goes on when it cannot be reached for a while. Received files are
saved to <workspace>/inbox/a2a/<agent>/, except with --json, which holds them. Ctrl-C stops following, not the task.

Exit codes: 0 completed, 1 failed, refused or canceled, 2 wrong usage, 3 unreachable, 4 key refused, 5 still working when
the time was up, 6 the agent asks something.";

pub(super) const PUSH_CONFIG: &str = "Examples:
  volcanic push-config create travel-bot 5c1e2b https://hook.example/a2a --token-env A2A_KEY_HOOK
  volcanic push-config create travel-bot 5c1e2b https://hook.example/a2a --auth-scheme Bearer --auth-file hook.key
  volcanic push-config list travel-bot 5c1e2b
  volcanic push-config get travel-bot 5c1e2b c-1
  volcanic push-config delete travel-bot 5c1e2b c-1

Tokens and credentials are sent, and shown as *** only.

Exit codes: 0 done, 1 the agent refused, 2 wrong usage, 3 unreachable, 4 key refused, 5 no answer in time.";

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

pub(super) const SETTINGS: &str = "Examples:
  volcanic settings
  volcanic settings --json
  A2AClient__WaitSeconds=5 volcanic settings

Settings come from the environment, below it from volcanic.toml in VOLCANIC_HOME or the file that --config names.

Exit codes: 0 all is well, 2 something is wrong (all of it is named).";

pub(super) const COMPLETIONS: &str = "Examples:
  volcanic completions bash > ~/.local/share/bash-completion/completions/volcanic
  volcanic completions zsh > \"${fpath[1]}/_volcanic\"
  volcanic completions fish > ~/.config/fish/completions/volcanic.fish";
