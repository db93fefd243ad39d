//! What the fake remembers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};
use volcanic_base::{Clock as _, SystemClock};

use super::call::{BotCall, BotOutcome};
use super::fault::BotFault;

/// A message of the bot as the person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct SentMessage {
    /// The chat.
    pub chat: i64,
    /// Its id in the chat.
    pub id: i64,
    /// The text, or the caption of a document.
    pub text: String,
    /// The entities as they were given.
    pub entities: Vec<Value>,
    /// The message it replies to.
    pub reply_to: Option<i64>,
    /// Whether it came without a sound.
    pub silent: bool,
    /// How often it was edited.
    pub edits: usize,
    /// The name and content of a document.
    pub document: Option<(String, Bytes)>,
}

#[derive(Debug)]
struct Pending {
    id: i64,
    update: Value,
}

#[derive(Debug, Default)]
struct Chat {
    blocked: bool,
    last_message: i64,
    from_people: Vec<i64>,
    from_bot: BTreeMap<i64, SentMessage>,
}

/// Everything of one fake server.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) token: String,
    pub(crate) journal: Vec<BotCall>,
    pub(crate) violations: Vec<String>,
    pub(crate) commands: Vec<Value>,
    pub(crate) allowed_updates: Option<Vec<String>>,
    /// The number of the newest poll; an older one that still waits ends with 409.
    pub(crate) poll: u64,
    pub(crate) hang_release: u64,
    next_update: i64,
    pending: VecDeque<Pending>,
    chats: HashMap<i64, Chat>,
    files: HashMap<String, (String, Bytes)>,
    callbacks: HashMap<String, bool>,
    faults: VecDeque<(String, BotFault)>,
}

impl State {
    pub(crate) fn new(token: String) -> Self {
        Self {
            token,
            journal: Vec::new(),
            violations: Vec::new(),
            commands: Vec::new(),
            allowed_updates: None,
            poll: 0,
            hang_release: 0,
            next_update: 700_000_001,
            pending: VecDeque::new(),
            chats: HashMap::new(),
            files: HashMap::new(),
            callbacks: HashMap::new(),
            faults: VecDeque::new(),
        }
    }

    // People.

    pub(crate) fn receive_message(&mut self, chat: &Value, from: &Value, content: Value) -> i64 {
        let chat_id = chat.get("id").and_then(Value::as_i64).unwrap_or_default();
        let entry = self.chats.entry(chat_id).or_default();
        entry.last_message += 1;
        let message_id = entry.last_message;
        entry.from_people.push(message_id);
        let mut message =
            json!({ "message_id": message_id, "date": now_seconds(), "chat": chat, "from": from });
        merge(&mut message, content);
        self.queue_update(json!({ "message": message }));
        message_id
    }

    pub(crate) fn queue_update(&mut self, mut update: Value) -> i64 {
        let id = self.next_update;
        self.next_update += 1;
        let kind =
            update.as_object().and_then(|members| members.keys().find(|key| *key != "update_id"));
        let kind = kind.cloned().unwrap_or_default();
        merge(&mut update, json!({ "update_id": id }));
        // Telegram applies the list when an update comes into being, not when it is fetched.
        if self
            .allowed_updates
            .as_ref()
            .is_none_or(|allowed| allowed.is_empty() || allowed.contains(&kind))
        {
            self.pending.push_back(Pending { id, update });
        }
        id
    }

    pub(crate) fn press_button(&mut self, user: i64, message: i64, data: &str) -> String {
        let id = format!("cb{}", self.next_update);
        self.callbacks.insert(id.clone(), false);
        let chat = json!({ "id": user, "type": "private", "first_name": "Test" });
        self.queue_update(json!({ "callback_query": {
            "id": id, "from": { "id": user, "is_bot": false, "first_name": "Test" }, "chat_instance": "1", "data": data,
            "message": { "message_id": message, "date": now_seconds(), "chat": chat },
        }}));
        id
    }

    pub(crate) fn add_file(&mut self, name: &str, bytes: Bytes) -> String {
        let id = format!("file-{}", self.files.len() + 1);
        self.files.insert(id.clone(), (name.to_owned(), bytes));
        id
    }

    pub(crate) fn set_blocked(&mut self, chat: i64, blocked: bool) {
        self.chats.entry(chat).or_default().blocked = blocked;
    }

    // Faults.

    pub(crate) fn push_fault(&mut self, method: &str, fault: BotFault) {
        self.faults.push_back((method.to_ascii_lowercase(), fault));
    }

    pub(crate) fn take_fault(&mut self, method: &str) -> Option<BotFault> {
        let position =
            self.faults.iter().position(|(name, _)| name.eq_ignore_ascii_case(method))?;
        self.faults.remove(position).map(|(_, fault)| fault)
    }

    pub(crate) fn release_hung(&mut self) {
        self.hang_release += 1;
    }

    // The journal.

    pub(crate) fn open_call(&mut self, method: &str, params: &Value) -> usize {
        self.journal.push(BotCall {
            method: method.to_owned(),
            params: params.clone(),
            outcome: BotOutcome::Open,
        });
        self.journal.len() - 1
    }

    pub(crate) fn close_call(&mut self, call: usize, outcome: BotOutcome) {
        if let Some(call) = self.journal.get_mut(call) {
            call.outcome = outcome;
        }
    }

    pub(crate) fn violation(&mut self, text: String) {
        self.violations.push(text);
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for call in &self.journal {
            let _ = writeln!(text, "{} {} -> {:?}", call.method, call.params, call.outcome);
        }
        for violation in &self.violations {
            let _ = writeln!(text, "VIOLATION {violation}");
        }
        text
    }

    // Updates.

    pub(crate) fn acknowledge(&mut self, offset: i64) {
        if offset > 0 {
            self.pending.retain(|pending| pending.id >= offset);
        } else if offset < 0 {
            let keep = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
            while self.pending.len() > keep {
                self.pending.pop_front();
            }
        }
    }

    pub(crate) fn due_updates(&self, limit: usize) -> Vec<Value> {
        self.pending.iter().take(limit).map(|pending| pending.update.clone()).collect()
    }

    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    // Chats.

    /// Whether the bot may write there: `None` for an unknown chat.
    pub(crate) fn may_write(&self, chat: i64) -> Option<bool> {
        self.chats.get(&chat).map(|chat| !chat.blocked)
    }

    pub(crate) fn has_message(&self, chat: i64, message: i64) -> bool {
        self.chats.get(&chat).is_some_and(|chat| {
            chat.from_people.contains(&message) || chat.from_bot.contains_key(&message)
        })
    }

    /// Gives `message` its id and shows it.
    pub(crate) fn show(&mut self, mut message: SentMessage) -> SentMessage {
        let chat = self.chats.entry(message.chat).or_default();
        chat.last_message += 1;
        message.id = chat.last_message;
        chat.from_bot.insert(message.id, message.clone());
        message
    }

    pub(crate) fn own_message(&mut self, chat: i64, message: i64) -> Option<&mut SentMessage> {
        self.chats.get_mut(&chat)?.from_bot.get_mut(&message)
    }

    pub(crate) fn sent_to(&self, chat: i64) -> Vec<SentMessage> {
        self.chats
            .get(&chat)
            .map(|chat| chat.from_bot.values().cloned().collect())
            .unwrap_or_default()
    }

    // The rest.

    pub(crate) fn file(&self, id: &str) -> Option<&(String, Bytes)> {
        self.files.get(id)
    }

    /// Marks a button press as answered; `None` for an unknown one, `Some(false)` when it was answered before.
    pub(crate) fn answer_callback(&mut self, id: &str) -> Option<bool> {
        let answered = self.callbacks.get_mut(id)?;
        Some(!std::mem::replace(answered, true))
    }

    pub(crate) fn command_names(&self) -> Vec<String> {
        self.commands
            .iter()
            .filter_map(|command| command.get("command").and_then(Value::as_str))
            .map(str::to_owned)
            .collect()
    }
}

pub(crate) fn now_seconds() -> i64 {
    SystemClock.now().as_second()
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}
