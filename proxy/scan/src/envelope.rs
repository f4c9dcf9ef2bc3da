//! The envelope of a message of a WebSocket: its kind, and the ids by which it belongs to an answer. The events of the
//! scanner have the rest of its meaning.

use crate::field::Field;
use crate::json::Value;
use crate::name::Name;

/// The envelope of one message, of either direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Envelope {
    /// The kind.
    pub kind: MessageKind,
    /// `event_id`: the id that the sender gave the message.
    pub event: Name,
    /// `error.event_id`: the id of the client's message that failed.
    pub failed_event: Name,
    /// The error ends the answer: vLLM's `processing_error`.
    pub is_fatal: bool,
    /// `response_id`; the scanner's id has that of a whole answer.
    pub response: Name,
    /// `item_id`.
    pub item: Name,
    /// `stream_id`: the stream of a WebSocket on which several answers are generated at a time.
    pub stream: Name,
    /// `previous_response_id`: the answer that a request continues.
    pub previous_response: Name,
    /// The conversation that an answer belongs to.
    pub conversation: Name,
    /// It names two different models: servers differ in which of them counts.
    pub has_two_models: bool,
    /// The model that transcribes the speaker's words.
    pub transcription_model: Name,
}

/// The kind of a message, by its `type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageKind {
    /// The client asks for an answer.
    Create,
    /// The client sends audio.
    Append,
    /// The client ends a piece of audio.
    Commit,
    /// The session's settings, of either side.
    Session,
    /// The speaker's turn has ended: the server may answer by itself.
    TurnEnd,
    /// An answer begins.
    Created,
    /// A part of an answer.
    Part,
    /// An answer ended.
    Done,
    /// A part of vLLM's transcription, which no message begins.
    Transcript,
    /// The end of it.
    TranscriptDone,
    /// A part of the transcription of the speaker's words.
    InputTranscript,
    /// The end of it.
    InputTranscriptDone,
    /// An error.
    Error,
    /// A message of no relevance to the meter.
    Other,
    /// A message without a type. Some servers read names in any letter case.
    #[default]
    Untyped,
}

impl MessageKind {
    fn read(word: &[u8]) -> Self {
        match word {
            b"response.create" => Self::Create,
            b"input_audio_buffer.append" => Self::Append,
            b"input_audio_buffer.commit" => Self::Commit,
            b"session.update" | b"session.created" | b"session.updated" => Self::Session,
            b"transcription_session.update" | b"transcription_session.updated" => Self::Session,
            b"input_audio_buffer.speech_stopped" | b"input_audio_buffer.committed" => Self::TurnEnd,
            b"response.created" => Self::Created,
            b"response.done"
            | b"response.completed"
            | b"response.incomplete"
            | b"response.failed"
            | b"response.cancelled" => Self::Done,
            b"transcription.delta" => Self::Transcript,
            b"transcription.done" => Self::TranscriptDone,
            b"conversation.item.input_audio_transcription.delta" => Self::InputTranscript,
            b"conversation.item.input_audio_transcription.completed"
            | b"conversation.item.input_audio_transcription.failed" => Self::InputTranscriptDone,
            b"error" => Self::Error,
            _ if word.starts_with(b"response.") => Self::Part,
            _ => Self::Other,
        }
    }
}

impl Envelope {
    /// Reads a field; of repeated members the last counts.
    pub(crate) fn take(&mut self, field: Field, value: Value<'_>) {
        let id = || match value {
            // The client chooses some of them: a text is no id.
            Value::Word(word) if word.iter().all(u8::is_ascii_graphic) => {
                Name::whole(word).unwrap_or_default()
            }
            _ => Name::default(),
        };
        match field {
            Field::Type => {
                self.kind = match value {
                    Value::Word(word) => MessageKind::read(word),
                    _ => MessageKind::Untyped,
                }
            }
            Field::EventId => self.event = id(),
            Field::ErrorEvent => self.failed_event = id(),
            Field::ErrorCode => self.is_fatal = matches!(value, Value::Word(b"processing_error")),
            Field::ResponseId => self.response = id(),
            Field::ItemId => self.item = id(),
            Field::StreamId => self.stream = id(),
            Field::PreviousResponse => self.previous_response = id(),
            Field::Conversation => self.conversation = id(),
            Field::TranscriptionModel => {
                self.transcription_model = match value {
                    Value::Word(word) => Name::cut(word),
                    _ => Name::default(),
                }
            }
            _ => {}
        }
    }
}
