//! What a hostile agent does, each fault a name of its own.

/// What a hostile agent does. Whatever the trick does not touch is answered as a friendly agent would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostileTrick {
    /// Nothing: the agent that the others are compared with.
    None,
    /// The same, but tasks are at work at first and can be followed.
    NoneStreaming,
    /// The answers at a place are spoilt as HTTP.
    Wire(HostilePlace, WireFault),
    /// The card says something bad.
    Card(CardFault),
    /// Answers to calls, sending among them, hold something bad.
    Task(TaskFault),
    /// A message makes a task that is at work; what is answered about it later holds something bad.
    Watched(TaskFault),
    /// The events of a stream are bad.
    Stream(StreamFault),
}

/// Which answers are spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostilePlace {
    /// The card.
    Card,
    /// Every call.
    Call,
    /// Every stream.
    Stream,
}

/// How it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostileProtocol {
    /// A2A 1.0 over JSON-RPC.
    #[default]
    JsonRpc,
    /// A2A 1.0 over HTTP+JSON.
    HttpJson,
    /// A2A 0.3 over JSON-RPC.
    OldJsonRpc,
}

/// What is wrong with an answer as HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireFault {
    /// Nothing is ever answered.
    Silence,
    /// The head comes at a byte a second.
    SlowHead,
    /// The body comes at a byte a second.
    SlowBody,
    /// The whole answer is there, but its body does not end.
    OpenEnd,
    /// One header goes on for ever.
    EndlessHeader,
    /// Headers follow one another for ever.
    EndlessHeaders,
    /// Interim answers (`103`) follow one another for ever.
    InterimFlood,
    /// A chunk's extension goes on for ever.
    EndlessChunkExtension,
    /// A chunk says that it is as large as can be written, and goes on for ever.
    HugeChunk,
    /// The trailer after the last chunk goes on for ever.
    EndlessTrailer,
    /// The body goes on for ever, inside of a JSON text.
    EndlessBody,
    /// The body is blanks for ever.
    EndlessBlanks,
    /// The body says that it is an exabyte, and goes on for ever.
    BoastfulLength,
    /// The connection is reset inside of the body.
    Reset,
    /// The body ends before the length it gave.
    ShortBody,
    /// The body goes on after the length it gave, which cuts the JSON.
    LongBody,
    /// Two lengths that differ.
    TwoLengths,
    /// The right answer, and after it another one that nobody asked for.
    TrailingAnswer,
    /// What comes is not HTTP.
    NotHttp,
    /// What comes is HTTP/2, settings for ever.
    Http2Settings,
    /// What comes is HTTP/2, pings for ever.
    Http2Pings,
    /// What comes is HTTP/2, resets of streams for ever.
    Http2Resets,
    /// Ten gigabytes, as ten megabytes of gzip.
    GzipBomb,
    /// A redirect with this status to this URL.
    Redirect(u16, String),
    /// The right answer, with a `Refresh` header to this URL.
    Refresh(String),
    /// An answer with this status and a body of a hundred mebibytes.
    HugeErrorBody(u16),
}

/// What is wrong with a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardFault {
    /// Its interface is at this URL.
    Elsewhere(String),
    /// It wants the key in this header.
    KeyHeader(String),
    /// It has so many skills.
    Skills(u64),
    /// It has so many interfaces that nobody speaks.
    Interfaces(u64),
    /// It is nested this deep.
    Deep(u64),
    /// Its name and skills hold lines and characters that would steer a terminal or fake a frame.
    Dressed,
    /// Its members have other types than they should.
    WrongTypes,
}

/// What is wrong with what a call answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskFault {
    /// `data` is nested this deep.
    DeepData(u64),
    /// A member that nobody knows is nested this deep.
    DeepUnknown(u64),
    /// So many files, each in an artifact of its own.
    Files(u64),
    /// Files of these names, each with its number in this list as content.
    FileNames(Vec<String>),
    /// Files whose base64 lies: another alphabet, padding in the middle, too much padding, a length that cannot be. Two are
    /// right.
    LyingBase64,
    /// One file of so many bytes, decoded.
    LargeFile(u64),
    /// So many parts with an empty text in one artifact.
    EmptyParts(u64),
    /// So many artifacts with an empty text.
    EmptyArtifacts(u64),
    /// So many links.
    Links(u64),
    /// So many messages in the history.
    History(u64),
    /// So many members in the metadata.
    Metadata(u64),
    /// So many members that nobody knows.
    UnknownMembers(u64),
    /// So many numbers in a `data` part.
    DataItems(u64),
    /// So many empty objects in a `data` part.
    DataObjects(u64),
    /// A text of so many bytes, in lines.
    LongText(u64),
    /// The same on one line.
    LongLine(u64),
    /// The answer belongs to another request.
    OtherRequest,
    /// The answer is about another task.
    OtherTask,
    /// The answer is about another context.
    OtherContext,
    /// The id of the task is so many bytes long.
    LongId(u64),
    /// An error with so many details.
    ErrorDetails(u64),
    /// An error whose message is so many bytes long.
    LongError(u64),
    /// A list of so many tasks, or webhooks.
    ListItems(u64),
    /// The members that hold the answer are there so many times.
    Repeated(u64),
}

/// What is wrong with the events of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamFault {
    /// One line goes on for ever.
    EndlessLine,
    /// Comments follow one another for ever.
    EndlessComments,
    /// Empty lines follow one another for ever.
    EndlessBlankLines,
    /// One event of so many bytes, in many lines.
    HugeEvent(u64),
    /// So many events that say nothing new.
    TinyEvents(u64),
    /// So many events without data.
    EmptyEvents(u64),
    /// So many artifacts, each in an event of its own.
    Artifacts(u64),
    /// An event with an id of so many bytes.
    LongId(u64),
    /// An event with a name of so many bytes.
    LongName(u64),
    /// An event with so many parts.
    EmptyParts(u64),
    /// An event with a text of so many bytes, in lines.
    LongText(u64),
    /// The event that ends the task holds a text of so many bytes on one line, and so does the task whenever it is read then.
    LongTask(u64),
    /// An event that is nested this deep.
    Deep(u64),
    /// The second event is about another task.
    OtherTask,
    /// The second event belongs to another request.
    OtherRequest,
    /// The second event is not text.
    NotText,
    /// The second event comes at a byte a second.
    SlowEvent,
    /// The stream is closed inside of the second event.
    CutInEvent,
    /// Nothing comes, and the stream stays open.
    Silence,
}
