//! Streams of dialects whose frames have a type.

use scan::Dialect::{
    Anthropic, Cohere, GeminiInteractions as Interactions, OpenaiResponses as Responses, Transcription,
};
use scan::Framing::Sse;

use super::Vector;

/// Streams of dialects whose frames have a type.
pub(super) const WORDED: &[Vector] = &[
    (
        "Responses: vLLM's end is always completed, the status in it is not; other ends have their meaning",
        Responses,
        Sse,
        r#"data: {"type":"response.completed","response":{"status":"incomplete"}}

data: {"type":"response.completed","response":{"status":"failed","usage":{"output_tokens":3}}}

data: {"type":"response.failed","response":{"status":"completed"}}

"#,
        "finish0:other done | error choice?(out 3) done | error done |",
    ),
    (
        "Anthropic: counts of the end are overwritten too, and the output of the beginning is no count",
        Anthropic,
        Sse,
        r#"data: {"type":"message_start","message":{"usage":{"cache_read_input_tokens":4,"output_tokens":1,"output_tokens_details":{"thinking_tokens":1}}}}

data: {"type":"message_delta","delta":{},"usage":{"output_tokens":7}}

data: {"type":"message_delta","delta":{},"usage":{"input_tokens":2}}

"#,
        "role0 | whole(cached 4 out 7) | whole(in 6 cached 4 out 7) |",
    ),
    (
        "an error leads, and the other events of the frame follow",
        Anthropic,
        Sse,
        r#"event: error
data: {"type":"content_block_delta","delta":{"text":"a"}}

data: {"type":"content_block_delta","delta":{"text":"a"},"error":{"type":"x"}}

"#,
        "error text0/1 | error text0/1 |",
    ),
    (
        "Responses: the beginning echoes the request, the end repeats the answer",
        Responses,
        Sse,
        r#"event: response.created
data: {"type":"response.created","response":{"object":"response","status":"in_progress","model":"m","usage":null,"tools":[{"parameters":{"properties":{"usage":{"output_tokens":9},"status":"completed"}}}],"metadata":{"usage":{"output_tokens":7}}}}

data: {"type":"response.in_progress","response":{"status":"completed","usage":{"output_tokens":7}}}

data: {"type":"response.output_item.added","item":{"type":"message","content":[]}}

data: {"type":"response.output_text.delta","delta":"Ok","logprobs":[]}

data: {"type":"response.output_text.done","text":"Ok"}

data: {"type":"response.completed","response":{"status":"completed","output":[{"content":[{"text":"Ok"}]}],"incomplete_details":null,"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":1},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":12}}}

"#,
        "progress | progress | meta | text0/2 | meta | finish0:stop choice?(in 9 cached 4 written 1 out 3 thought 2 total 12) done |",
    ),
    (
        "Responses: each kind of delta, the type first or last",
        Responses,
        Sse,
        r#"data: {"type":"response.refusal.delta","delta":"no"}

data: {"delta":"hm","type":"response.reasoning_text.delta"}

data: {"delta":"hm","type":"response.reasoning_summary_text.delta"}

data: {"delta":"{","type":"response.function_call_arguments.delta"}

data: {"type":"response.custom_tool_call_input.delta","delta":"x"}

data: {"type":"response.mcp_call_arguments.delta","delta":"x"}

data: {"type":"response.code_interpreter_call_code.delta","delta":"x"}

data: {"type":"response.audio.delta","delta":"AAAA"}

data: {"type":"response.audio.transcript.delta","delta":"a"}

data: {"type":"response.output_text.delta","delta":""}

data: {"type":"response.output_text.delta","delta":"ab","logprobs":[{"token":"a"},{"token":"b"}]}

data: {"type":"response.never.heard.of","delta":"x"}

"#,
        "refusal0/2 | reasoning0/2 | reasoning0/2 | tool0/1 | tool0/1 | tool0/1 | tool0/1 | audio0/4 | audio0/1 | empty0 | text0/2=2 | meta |",
    ),
    (
        "Responses of vLLM: completed is incomplete",
        Responses,
        Sse,
        r#"data: {"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":9,"output_tokens":3},"metrics":{"queue_time_ms":0.5,"time_to_first_token_ms":2,"generation_time_ms":1.25}},"type":"response.completed"}

"#,
        "finish0:length choice?(in 9 out 3) server(queue 500000 prefill 2000000 decode 1250000) done |",
    ),
    (
        "Responses: the other ends",
        Responses,
        Sse,
        r#"data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}

data: {"type":"response.incomplete","response":{"incomplete_details":{}}}

data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"},"usage":null}}

data: {"type":"response.cancelled","response":{"status":"cancelled"}}

"#,
        "finish0:contentfilter done | finish1:other done | error done | finish3:abort done |",
    ),
    (
        "Responses of llama.cpp behind LiteLLM: times beside the response, an end mark",
        Responses,
        Sse,
        r#"data: {"type":"response.completed","response":{"status":"completed","model":"m","usage":{"input_tokens":19,"output_tokens":24}},"timings":{"cache_n":18,"prompt_ms":0.373,"predicted_n":24,"predicted_ms":2.5},"model":"m"}

data: [DONE]

"#,
        "finish0:stop choice?(in 19 out 24) server(prefill 373000 decode 2500000) done | done |",
    ),
    (
        "Responses of llama.cpp side by side: a running count is one of the only answer",
        Responses,
        Sse,
        r#"data: {"type":"response.created","response":{"status":"in_progress"}}

data: {"type":"response.output_text.delta","delta":"a","item_id":"1","timings":{"prompt_n":7,"predicted_n":1}}

data: {"type":"response.created","response":{"status":"in_progress"}}

data: {"type":"response.output_text.delta","delta":"b","item_id":"2","timings":{"prompt_n":7,"predicted_n":1}}

data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":7,"output_tokens":1}},"timings":{"prompt_n":7,"predicted_n":1}}

data: {"type":"response.output_text.delta","delta":"c","item_id":"2","timings":{"prompt_n":7,"predicted_n":2}}

data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":7,"output_tokens":2}}}

data: {"type":"response.output_text.done","text":"bc","timings":{"prompt_n":7,"predicted_n":2}}

"#,
        "progress | text0/1 running0(in 7 out 1) | progress role1 | text0/1 | finish0:stop choice?(in 7 out 1) | text0/1 | finish1:stop choice?(in 7 out 2) done | meta |",
    ),
    (
        "Responses: errors",
        Responses,
        Sse,
        r#"data: {"type":"error","code":"x","message":"boom","param":null,"sequence_number":3}

event: error
data: {"error":{"message":"boom"}}

"#,
        "error | error |",
    ),
    (
        "Responses: the body ends inside the last frame's block, and in a delta's",
        Responses,
        Sse,
        r#"data: {"type":"response.output_text.delta","delta":"a"}

data: {"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":1}}}
"#,
        "text0/1 | finish0:stop choice?(in 1 out 1) done ~",
    ),
    (
        "Responses: a torn delta is not reported",
        Responses,
        Sse,
        r#"data: {"type":"response.output_text.delta","delta":"a"}"#,
        "~",
    ),
    (
        "Responses over several data lines, in several bytes a character",
        Responses,
        Sse,
        r#"data: {"type":"response.output_text.delta",
data: "delta":"é😀\u00e9\ud83d\ude00"}

"#,
        "text0/4 |",
    ),
    (
        "Responses: of two deltas and two types the last counts",
        Responses,
        Sse,
        r#"data: {"type":"response.refusal.delta","delta":"abc","delta":"d","type":"response.output_text.delta"}

"#,
        "text0/1 |",
    ),
    (
        "Responses: counts that are none",
        Responses,
        Sse,
        r#"data: {"type":"response.completed","response":{"usage":{"input_tokens":-1,"output_tokens":1.5,"input_tokens_details":null,"output_tokens_details":{"reasoning_tokens":9007199254740993}}}}

"#,
        "finish0:stop choice?(rejected 3) done |",
    ),
    (
        "Responses: no logarithm",
        Responses,
        Sse,
        "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\",\"logprobs\":[{\"logprob\":NaN}]}\n\n",
        "text0/1=1 |",
    ),
    (
        "Anthropic: the later count overwrites, the parts of the input add up",
        Anthropic,
        Sse,
        r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":2,"cache_read_input_tokens":90,"output_tokens":1,"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Ok"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":12}}

event: message_stop
data: {"type":"message_stop"}

"#,
        "role0 running0(in 97 cached 90 written 2) | meta | ping | text0/2 | meta | finish0:stop whole(in 97 cached 90 written 2 out 12) | done |",
    ),
    (
        "Anthropic: the end repeats the input, and what is null is not repeated",
        Anthropic,
        Sse,
        r#"data: {"type":"message_start","message":{"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}

data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"input_tokens":1,"cache_read_input_tokens":18,"cache_creation_input_tokens":null,"output_tokens":24,"output_tokens_details":{"thinking_tokens":7}}}

"#,
        "role0 running0(in 0 cached 0) | finish0:length whole(in 19 cached 18 out 24 thought 7) |",
    ),
    (
        "Anthropic: each kind of delta, several blocks",
        Anthropic,
        Sse,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"AAAA"}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"dig","input":{}}}

data: {"index":1,"delta":{"partial_json":"","type":"input_json_delta"},"type":"content_block_delta"}

data: {"index":1,"delta":{"partial_json":"{\"usage\":1","type":"input_json_delta"},"type":"content_block_delta"}

data: {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"text":"no"}}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

data: {"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":3}}

"#,
        "reasoning0/2 | empty0 | meta | empty0 | tool0/10 | empty0 | finish0:toolcalls | whole(out 3) |",
    ),
    (
        "Anthropic: of two usages the last counts, and the first leaves nothing behind",
        Anthropic,
        Sse,
        r#"data: {"type":"message_delta","delta":{"stop_reason":null},"usage":{"input_tokens":9,"output_tokens":1},"usage":{"output_tokens":2}}

data: {"type":"message_delta","usage":{"output_tokens":3},"delta":{"stop_reason":"end_turn"},"delta":{"stop_reason":"max_tokens"}}

"#,
        "whole(out 2) | finish0:length whole(out 3) |",
    ),
    (
        "Anthropic: a prompt of no known length, a count refused",
        Anthropic,
        Sse,
        r#"data: {"type":"message_start","message":{"model":"m","usage":{"output_tokens":1}}}

data: {"type":"message_delta","usage":{"input_tokens":-5,"output_tokens":3}}

"#,
        "role0 | whole(out 3 rejected 1) |",
    ),
    (
        "Anthropic: looks like the end, and is not",
        Anthropic,
        Sse,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"message_stop","text":"{\"type\":\"message_stop\"}"},"message":{"usage":{"input_tokens":9}},"usage":{"output_tokens":9},"stop_reason":"end_turn"}

"#,
        "text0/23 running0(out 9) |",
    ),
    (
        "Anthropic: reasons",
        Anthropic,
        Sse,
        r#"data: {"type":"message_delta","delta":{"stop_reason":"stop_sequence"}}

data: {"type":"message_delta","delta":{"stop_reason":"pause_turn"}}

data: {"type":"message_delta","delta":{"stop_reason":"refusal"}}

data: {"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}

data: {"type":"message_delta","delta":{"stop_reason":"tired"}}

"#,
        "finish0:stop | finish0:stop | finish0:contentfilter | finish0:length | finish0:other |",
    ),
    (
        "Anthropic: an error after some text; llama.cpp's is marked by the block's name only",
        Anthropic,
        Sse,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}

event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"x"}}

event: error
data: {"code":500,"message":"x","type":"server_error"}

"#,
        "text0/1 | error | error |",
    ),
    (
        "Cohere: a plan, a call, text, floats",
        Cohere,
        Sse,
        r#"data: {"type":"message-start","id":"x","delta":{"message":{"role":"assistant"}}}

data: {"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Ok"}}}}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"hm"}}}}

data: {"type":"content-end","index":0}

data: {"type":"tool-plan-delta","delta":{"message":{"tool_plan":"dig"}}}

data: {"type":"tool-call-start","delta":{"message":{"tool_calls":{"id":"t","function":{"name":"dig","arguments":""}}}}}

data: {"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"{\"a\""}}}}}

data: {"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"billed_units":{"input_tokens":1.0},"tokens":{"input_tokens":12.0,"output_tokens":3.0},"cached_tokens":4.0}}}

data: [DONE]

"#,
        "role0 | meta | text0/2 | reasoning0/2 | meta | reasoning0/3 | tool0/3 | tool0/4 | finish0:toolcalls whole(in 1 cached 1 out 3 used_in 12) | done |",
    ),
    (
        "Interactions: a thought, an answer, counts in the last event",
        Interactions,
        Sse,
        r#"event: interaction.created
data: {"interaction":{"id":"v1_a","status":"in_progress","object":"interaction","model":"g"},"event_type":"interaction.created"}

event: step.start
data: {"index":0,"step":{"type":"thought"},"event_type":"step.start"}

event: step.delta
data: {"index":0,"delta":{"content":{"text":"hm","type":"text"},"type":"thought_summary"},"event_type":"step.delta"}

event: step.delta
data: {"index":0,"delta":{"signature":"c2ln","type":"thought_signature"},"event_type":"step.delta"}

event: step.delta
data: {"index":1,"delta":{"text":"Ok, ","type":"text"},"event_type":"step.delta"}

event: step.delta
data: {"index":2,"delta":{"arguments":"{\"a\"","type":"arguments_delta"},"event_type":"step.delta"}

event: step.stop
data: {"index":2,"event_type":"step.stop","usage":{"total_input_tokens":5,"total_output_tokens":4}}

event: interaction.completed
data: {"interaction":{"id":"v1_a","status":"requires_action","usage":{"total_input_tokens":5,"total_cached_tokens":2,"input_tokens_by_modality":[{"modality":"text","tokens":2},{"modality":"audio","tokens":3}],"total_output_tokens":8,"output_tokens_by_modality":[{"modality":"text","tokens":8}],"total_tool_use_tokens":4,"total_thought_tokens":3,"total_tokens":20}},"event_type":"interaction.completed"}

event: done
data: [DONE]

"#,
        "progress | meta | reasoning0/2 | empty0 | text0/4 | tool0/4 | meta | finish0:toolcalls choice?(in 9 cached 2 heard 3 out 11 thought 3 total 20) done | done |",
    ),
    (
        "Interactions of the first revision; limits, failures and errors",
        Interactions,
        Sse,
        r#"data: {"event_type":"interaction.start","interaction":{"id":"v1_a","agent":"deep"}}

data: {"event_type":"content.delta","index":0,"delta":{"type":"text","text":"Ok"}}

data: {"event_type":"interaction.complete","interaction":{"status":"incomplete","usage":{"total_input_tokens":5,"total_output_tokens":8}}}

data: {"event_type":"interaction.completed","interaction":{"status":"failed"}}

data: {"event_type":"error","error":{"code":"internal","message":"x"}}

"#,
        "progress | text0/2 | finish0:length choice?(in 5 out 8) done | error done | error |",
    ),
    (
        "Transcription of OpenAI and llama.cpp: typed events",
        Transcription,
        Sse,
        r#"data: {"type":"transcript.text.delta","delta":" so"}

data: {"type":"transcript.text.done","text":" so","usage":{"type":"tokens","input_tokens":14,"output_tokens":2}}

"#,
        "text0/3 | finish0:stop whole(in 14 out 2) done |",
    ),
    (
        "Transcription of vLLM: chunks of a chat, and seconds that are no tokens",
        Transcription,
        Sse,
        r#"data: {"id":"trsc-1","object":"transcription.chunk","model":"w","choices":[{"delta":{"content":" so"},"finish_reason":null}]}

data: {"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"type":"duration","seconds":4}}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}

data: [DONE]

"#,
        "text0/3 | finish0:stop | meta | whole(in 9 out 2) | done |",
    ),
];
