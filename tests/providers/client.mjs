// Calls of the official clients for Node.js. usage: node client.mjs CALL URL
// Prints what the client saw as JSON, with the fields of seen.py.
import { createRequire } from 'node:module';
const installed = createRequire(`${process.env.TOKENMETER_PROVIDERS}/node/`);
const OpenAI = installed('openai').default;
const Anthropic = installed('@anthropic-ai/sdk').default;

const [call, url] = process.argv.slice(2);
const messages = [{ role: 'user', content: 'What is the answer? “Grüezi”' }];
const openai = (retries = 0) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-none', maxRetries: retries });
const anthropic = (retries = 0) => new Anthropic({ baseURL: url, apiKey: 'sk-ant-none', maxRetries: retries });
const model = 'gpt-6-mini';
const claude = { model: 'claude-nova-5', max_tokens: 64, messages };

function chatTokens(usage) {
  const { cached_tokens: cached = 0, cache_write_tokens: written = 0 } = usage.prompt_tokens_details;
  const thought = usage.completion_tokens_details.reasoning_tokens;
  return { input: usage.prompt_tokens - cached - written, input_cached: cached, input_cache_write: written,
    output: usage.completion_tokens - thought, output_reasoning: thought };
}

function responseTokens(usage) {
  const { cached_tokens: cached, cache_write_tokens: written } = usage.input_tokens_details;
  const thought = usage.output_tokens_details.reasoning_tokens;
  return { input: usage.input_tokens - cached - written, input_cached: cached, input_cache_write: written,
    output: usage.output_tokens - thought, output_reasoning: thought };
}

function messageTokens(usage) {
  const thought = usage.output_tokens_details.thinking_tokens;
  return { input: usage.input_tokens, input_cached: usage.cache_read_input_tokens,
    input_cache_write: usage.cache_creation_input_tokens, output: usage.output_tokens - thought, output_reasoning: thought };
}

async function chatStream(options = {}, leaveAfter = 0) {
  const seen = { text: '' };
  const stream = await openai().chat.completions.create({ model, messages, stream: true, ...options });
  let number = 0;
  for await (const chunk of stream) {
    seen.text += chunk.choices[0]?.delta.content ?? '';
    if (chunk.usage) seen.tokens = chatTokens(chunk.usage);
    number += 1;
    if (number === leaveAfter) break;
  }
  return seen;
}

async function messageStream(leaveAfter = 0) {
  const seen = { text: '' };
  let number = 0;
  for await (const part of await anthropic().messages.create({ ...claude, stream: true })) {
    seen.text += part.delta?.text ?? '';
    if (part.type === 'message_delta') seen.tokens = messageTokens(part.usage);
    number += 1;
    if (number === leaveAfter) break;
  }
  return seen;
}

const calls = {
  'openai-chat': async (retries = 0) => {
    const answer = await openai(retries).chat.completions.create({ model, messages });
    return { text: answer.choices[0].message.content, tokens: chatTokens(answer.usage) };
  },
  'openai-chat-retried': () => calls['openai-chat'](2),
  'openai-stream': () => chatStream(),
  'openai-stream-counted': () => chatStream({ stream_options: { include_usage: true } }),
  'openai-stream-left': () => chatStream({}, 4),
  'openai-response-stream': async () => {
    const seen = { text: '' };
    for await (const part of await openai().responses.create({ model, input: messages[0].content, stream: true })) {
      if (part.type === 'response.output_text.delta') seen.text += part.delta;
      if (part.type === 'response.completed') seen.tokens = responseTokens(part.response.usage);
    }
    return seen;
  },
  'anthropic-message': async (retries = 0) => {
    const answer = await anthropic(retries).messages.create(claude);
    return { text: answer.content.map((block) => block.text ?? '').join(''), tokens: messageTokens(answer.usage) };
  },
  'anthropic-message-retried': () => calls['anthropic-message'](2),
  'anthropic-stream': () => messageStream(),
  'anthropic-stream-left': () => messageStream(6),
};

try {
  console.log(JSON.stringify(await calls[call]()));
} catch (error) {
  console.log(JSON.stringify({ error: [error.status ?? null, error.constructor.name] }));
}
