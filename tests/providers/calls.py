"""Calls of the official clients for Python. Each takes the URL that stands for the provider's, and returns what the client
saw. Nothing but the base URL differs from a direct call.
"""
import contextlib

import anthropic
import openai
from google import genai
from google.genai import types as google

import anthropic_fake
import azure_fake
import gemini_fake
import openai_fake
import openrouter_fake
from seen import Seen, chat_tokens, counts, gemini_tokens, interaction_tokens, message_tokens, response_tokens

ASKED = "What is the answer? “Grüezi”"
MESSAGES = [{"role": "user", "content": ASKED}]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TIMEOUT_S = 60


def openai_client(url, retries=0):
    return openai.OpenAI(base_url=url + "/v1", api_key="sk-none", max_retries=retries, timeout=TIMEOUT_S)


def azure_client(url, version=azure_fake.NEW):
    return openai.AzureOpenAI(azure_endpoint=url, api_key="none", api_version=version, max_retries=0, timeout=TIMEOUT_S)


def anthropic_client(url, retries=0):
    return anthropic.Anthropic(base_url=url, api_key="sk-ant-none", max_retries=retries, timeout=TIMEOUT_S)


def gemini_client(url):
    return genai.Client(api_key="none", http_options=google.HttpOptions(base_url=url, timeout=TIMEOUT_S * 1000))


@contextlib.contextmanager
def errors(seen):
    """Notes the exception that a client raises for an error of the provider."""
    try:
        yield
    except (openai.APIError, anthropic.APIError) as error:
        seen.error = (getattr(error, "status_code", None), type(error).__name__, without_ids(str(error)))
    except genai.errors.APIError as error:
        seen.error = (error.code, type(error).__name__, str(error))


def without_ids(text):
    """An error's text without the request's id, which is new each time."""
    return text.partition("'request_id'")[0].partition("request id")[0]


def chat(client, model, **more):
    """A chat, streamed if `stream` is set; `leave_after` leaves after so many chunks."""
    seen, leave_after = Seen(), more.pop("leave_after", None)
    with errors(seen):
        result = client.chat.completions.create(model=model, messages=MESSAGES, **more)
        for number, part in enumerate(result if more.get("stream") else [result], 1):
            read_chat(seen, part)
            if number == leave_after:
                result.close()
                break
    return seen


def read_chat(seen, part):
    seen.model = part.model or seen.model
    for choice in part.choices:
        said = getattr(choice, "delta", None) or choice.message
        seen.text += said.content or ""
        for tool in said.tool_calls or ():
            seen.tools += (tool.function.name or "") + (tool.function.arguments or "")
        seen.finish = choice.finish_reason or seen.finish
    seen.tokens = chat_tokens(part.usage) or seen.tokens
    for name in ("prompt_filter_results", "provider"):
        if getattr(part, name, None):
            seen.extras[name] = getattr(part, name)
    if part.usage and getattr(part.usage, "cost", None):
        seen.extras["cost"] = part.usage.cost


TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]
COUNTED = {"include_usage": True}


def openai_chat(url, retries=0, **more):
    return chat(openai_client(url, retries), openai_fake.MODEL, **more)


def azure_chat(url, version=azure_fake.NEW, **more):
    return chat(azure_client(url, version), azure_fake.DEPLOYMENT, **more)


def azure_v1_chat(url, **more):
    client = openai.OpenAI(base_url=url + "/openai/v1/", api_key="none", max_retries=0, timeout=TIMEOUT_S)
    return chat(client, azure_fake.DEPLOYMENT, **more)


def openrouter_chat(url, **more):
    client = openai.OpenAI(base_url=url + "/api/v1", api_key="sk-or-none", max_retries=0, timeout=TIMEOUT_S)
    return chat(client, openrouter_fake.MODEL, **more)


def openai_response(url, stream=False, retries=0, leave_after=None):
    seen = Seen()
    with errors(seen):
        result = openai_client(url, retries).responses.create(model=openai_fake.MODEL, input=ASKED, stream=stream)
        if not stream:
            read_response(seen, result)
            seen.text = result.output_text
            return seen
        for number, part in enumerate(result, 1):
            if part.type == "response.output_text.delta":
                seen.text += part.delta
            elif part.type == "response.completed":
                read_response(seen, part.response)
            if number == leave_after:
                result.close()
                break
    return seen


def read_response(seen, response):
    seen.model, seen.finish, seen.tokens = response.model, response.status, response_tokens(response.usage)


def openai_embedding(url):
    result = openai_client(url).embeddings.create(model="text-embedding-4", input=ASKED)
    return Seen(text=str(result.data[0].embedding), model=result.model, tokens=counts(input=result.usage.prompt_tokens))


def azure_embedding(url):
    result = azure_client(url).embeddings.create(model=azure_fake.DEPLOYMENT, input=ASKED)
    return Seen(text=str(result.data[0].embedding), model=result.model, tokens=counts(input=result.usage.prompt_tokens))


def vertex_client(url):
    return anthropic.AnthropicVertex(base_url=url + "/v1", access_token="none", project_id="p", region="europe-west6",
                                     max_retries=0, timeout=TIMEOUT_S)


def anthropic_message(url, stream=False, retries=0, leave_after=None, vertex=False, **more):
    """`stream` is the raw stream of events; `vertex` is Anthropic's model on Vertex AI."""
    seen, client = Seen(), vertex_client(url) if vertex else anthropic_client(url, retries)
    with errors(seen):
        result = client.messages.create(model=anthropic_fake.MODEL, max_tokens=64, messages=MESSAGES, stream=stream, **more)
        if not stream:
            read_message(seen, result)
            return seen
        for number, part in enumerate(result, 1):
            if part.type == "content_block_delta":
                seen.text += getattr(part.delta, "text", "")
                seen.thought += getattr(part.delta, "thinking", "")
                seen.tools += getattr(part.delta, "partial_json", "")
            elif part.type == "message_start":
                seen.model = part.message.model
            elif part.type == "message_delta":
                seen.finish, seen.tokens = part.delta.stop_reason, message_tokens(part.usage)
            if number == leave_after:
                result.close()
                break
    return seen


def read_message(seen, message):
    for block in message.content:
        seen.text += getattr(block, "text", "")
        seen.thought += getattr(block, "thinking", "")
        seen.tools += str(getattr(block, "input", ""))
    seen.model, seen.finish, seen.tokens = message.model, message.stop_reason, message_tokens(message.usage)


def anthropic_collected(url, **more):
    """The client's helper that collects a stream."""
    seen = Seen()
    with anthropic_client(url).messages.stream(model=anthropic_fake.MODEL, max_tokens=64, messages=MESSAGES, **more) as stream:
        read_message(seen, stream.get_final_message())
    return seen


ANTHROPIC_TOOLS = [{"name": "weather", "input_schema": CITY}]
GEMINI_TOOLS = [google.Tool(function_declarations=[google.FunctionDeclaration(name="weather", parameters_json_schema=CITY)])]


def gemini(url, stream=False, leave_after=None, tools=None):
    seen = Seen()
    config = google.GenerateContentConfig(tools=tools, automatic_function_calling={"disable": True})
    with errors(seen):
        client = gemini_client(url)                          # it closes its connections when it is dropped
        make = client.models.generate_content_stream if stream else client.models.generate_content
        result = make(model=gemini_fake.MODEL, contents=ASKED, config=config)
        for number, part in enumerate(result if stream else [result], 1):
            for piece in part.candidates[0].content.parts:
                if piece.thought:
                    seen.thought += piece.text
                else:
                    seen.text += piece.text or ""
                seen.tools += str(piece.function_call.args) if piece.function_call else ""
            seen.finish = str(part.candidates[0].finish_reason or seen.finish)
            seen.model, seen.tokens = part.model_version, gemini_tokens(part.usage_metadata)
            if number == leave_after:
                result.close()
                break
    return seen


def gemini_embedding(url):
    client = gemini_client(url)
    result = client.models.embed_content(model="gemini-embedding-3", contents=[ASKED])
    return Seen(text=str(result.embeddings[0].values), tokens=counts(input=result.usage_metadata.prompt_token_count))


INTERACTION_TOOLS = [{"type": "function", "name": "weather", "parameters": CITY}]


def gemini_interaction(url, stream=False, leave_after=None, tools=None):
    seen = Seen()
    with errors(seen):
        client = gemini_client(url)
        more = {"tools": tools} if tools else {}
        result = client.interactions.create(model=gemini_fake.MODEL, input=ASKED, stream=stream, **more)
        if not stream:
            read_interaction(seen, result)
            return seen
        for number, part in enumerate(result, 1):
            if part.event_type == "step.delta":
                delta = part.delta
                seen.text += getattr(delta, "text", "")
                seen.tools += getattr(delta, "arguments", "")
                seen.thought += delta.content.text if delta.type == "thought_summary" else ""
            elif part.event_type == "interaction.completed":
                read_interaction(seen, part.interaction)
            if number == leave_after:
                result.close()
                break
    return seen


def read_interaction(seen, interaction):
    for step in interaction.steps or []:
        seen.text += "".join(part.text for part in getattr(step, "content", None) or [])
        seen.thought += "".join(part.text for part in getattr(step, "summary", None) or [])
        seen.tools += str(getattr(step, "arguments", ""))
    seen.model, seen.finish = interaction.model, interaction.status
    seen.tokens = interaction_tokens(interaction.usage)


def gemini_fetched_interaction(url):
    """The client fetches an earlier interaction, which is counted already."""
    client = gemini_client(url)
    return client.interactions.get("v1_earlier").output_text
