//! The streams: a vLLM chat stream with frames of about 200 bytes, the same with running usage and two interleaved
//! choices, and llama.cpp's, each with many whole frames per read and with one frame per read.

/// One stream and its slices.
pub(crate) struct Stream {
    /// Its description.
    pub(crate) name: &'static str,
    /// Frames in it.
    pub(crate) frames: usize,
    /// Bytes per slice.
    pub(crate) read_bytes: usize,
    body: Vec<u8>,
    cuts: Vec<usize>,
}

const WORDS: [&str; 8] = [" the", " token", " meter", "\\n", " counts", " größer", ".", " stream"];

impl Stream {
    /// All of them.
    pub(crate) fn all() -> Vec<Self> {
        vec![
            Self::new("vLLM chat, many frames a read", 65_536, vllm),
            Self::new("vLLM chat, one frame a read", 0, vllm),
            Self::new("vLLM chat with running usage and n=2", 65_536, vllm_running),
            Self::new("llama.cpp chat, many frames a read", 65_536, llama_cpp),
            Self::new("vLLM chat, frames torn at odd places", 1_000, vllm),
        ]
    }

    /// A stream of frames made by `frame`, in slices of `read_bytes`; 0 means one frame per slice.
    pub(crate) fn new(name: &'static str, read_bytes: usize, frame: fn(usize, &str) -> String) -> Self {
        const FRAMES: usize = 2_000;
        let (mut body, mut ends) = (Vec::new(), Vec::new());
        for index in 0..FRAMES {
            body.extend_from_slice(frame(index, WORDS[index % WORDS.len()]).as_bytes());
            ends.push(body.len());
        }
        let cuts = match read_bytes {
            0 => ends,
            // Odd sizes cut frames; a read of 64 KiB has some three hundred.
            n => (1..).map(|i| i * n).take_while(|&at| at < body.len()).chain([body.len()]).collect(),
        };
        let read_bytes = cuts.iter().scan(0, |from, &to| Some(to - std::mem::replace(from, to))).max();
        Self { name, frames: FRAMES, read_bytes: read_bytes.unwrap_or(0), body, cuts }
    }

    /// Mean bytes of a frame.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.body.len() / self.frames
    }

    /// The slices, as they arrive.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.cuts.iter().map(move |&to| &self.body[std::mem::replace(&mut from, to)..to])
    }

    /// The body as one slice, for readers that cannot resume.
    pub(crate) fn whole_reads(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.body[..])
    }
}

pub(crate) fn vllm(_index: usize, word: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-acc0906c1d2a5b50\",\"object\":\"chat.completion.chunk\",\"created\":1795220703,\
         \"model\":\"tiny\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}},\"logprobs\":null,\
         \"finish_reason\":null,\"token_ids\":null}}]}}\n\n"
    )
}

pub(crate) fn vllm_running(index: usize, word: &str) -> String {
    let (choice, tokens) = (index % 2, index / 2 + 1);
    format!(
        "data: {{\"id\":\"chatcmpl-acc0906c1d2a5b50\",\"object\":\"chat.completion.chunk\",\"created\":1795220703,\
         \"model\":\"tiny\",\"choices\":[{{\"index\":{choice},\"delta\":{{\"content\":\"{word}\"}},\"logprobs\":null,\
         \"finish_reason\":null,\"token_ids\":null}}],\"usage\":{{\"prompt_tokens\":19,\"total_tokens\":{},\
         \"completion_tokens\":{tokens},\"completion_tokens_details\":null}}}}\n\n",
        tokens + 19
    )
}

pub(crate) fn openai(index: usize, word: &str) -> String {
    vllm(index, word).replace("]}\n", "],\"usage\":null}\n")
}

pub(crate) fn ollama(index: usize, word: &str) -> String {
    let zeros = "],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0}}\n";
    vllm(index, word).replace("]}\n", zeros)
}

fn llama_cpp(_index: usize, word: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}],\
         \"created\":1795221560,\"id\":\"chatcmpl-5fRphAS1X9lJxBkJLCnT3eFzuhZ4JnxY\",\"model\":\"tiny\",\
         \"system_fingerprint\":\"b11669-Debian\",\"object\":\"chat.completion.chunk\"}}\n\n"
    )
}
