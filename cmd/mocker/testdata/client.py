"""The official client of OpenAI against a running mocker: client.py URL FAULTY_URL SLOW_URL."""

import asyncio
import sys

import openai

url, faulty, slow = sys.argv[1:]
client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=60)
messages = [{"role": "system", "content": "You are a test."}, {"role": "user", "content": "Say something, please."}]

# Models.
assert [m.id for m in client.models.list()] == ["dynamo"]
assert client.models.retrieve("dynamo").id == "dynamo"

# A chat, whole.
chat = client.chat.completions.create(model="dynamo", messages=messages, max_tokens=12, temperature=0.7, seed=4)
assert chat.object == "chat.completion" and chat.id.startswith("chatcmpl-"), chat
assert chat.choices[0].finish_reason == "length" and chat.choices[0].message.role == "assistant"
assert len(chat.choices[0].message.content.split()) == 12, chat
assert chat.usage.completion_tokens == 12 and chat.usage.total_tokens == chat.usage.prompt_tokens + 12
assert chat.usage.prompt_tokens_details.cached_tokens == 0

# The same as a stream, from the cache; the text is the same.
stream = client.chat.completions.create(
    model="dynamo", messages=messages, max_completion_tokens=12, seed=4, stream=True, stream_options={"include_usage": True}
)
text, finish, usage, events = "", None, None, 0
for event in stream:
    events += 1
    if event.usage:
        usage = event.usage
        assert event.choices == []
        continue
    text += event.choices[0].delta.content or ""
    finish = event.choices[0].finish_reason or finish
assert text == chat.choices[0].message.content and finish == "length" and events == 14, (text, finish, events)
assert usage.completion_tokens == 12 and usage.prompt_tokens_details.cached_tokens > 0, usage

# The helper that collects a stream.
with client.chat.completions.stream(model="dynamo", messages=messages, max_tokens=5, seed=1) as helper:
    kinds = [e.type for e in helper if e.type != "chunk"]
assert kinds == ["content.delta"] * 5 + ["content.done"], kinds

# Completions: several prompts and answers, stop strings.
done = client.completions.create(model="dynamo", prompt=["a b c", "d"], n=2, max_tokens=4, seed=9)
assert [c.index for c in done.choices] == [0, 1, 2, 3] and done.usage.completion_tokens == 16, done
word = done.choices[0].text.split()[2]
stopped = client.completions.create(model="dynamo", prompt="a b c", max_tokens=4, seed=9, stop=[word])
assert stopped.choices[0].finish_reason == "stop" and stopped.usage.completion_tokens == 3, stopped
assert word not in stopped.choices[0].text and done.choices[0].text.startswith(stopped.choices[0].text)
assert "".join(e.choices[0].text for e in client.completions.create(model="dynamo", prompt="x", max_tokens=4, seed=9, stream=True))


def fails(kind, call):
    try:
        call()
    except kind as e:
        return e
    raise AssertionError(f"no {kind.__name__}")


# Errors have the classes and the fields that clients look at.
e = fails(openai.NotFoundError, lambda: client.chat.completions.create(model="other", messages=messages))
assert e.code == "model_not_found" and e.param == "model" and e.type == "invalid_request_error", e.body
e = fails(openai.BadRequestError, lambda: client.chat.completions.create(model="dynamo", messages=messages, max_tokens=-1))
assert e.param == "max_tokens" and "max_tokens is -1" in e.message, e.body
e = fails(openai.BadRequestError, lambda: client.completions.create(model="dynamo", prompt="x" * 40000, max_tokens=1))
assert e.code == "context_length_exceeded", e.body
fails(openai.NotFoundError, lambda: client.embeddings.create(model="dynamo", input="x"))

# Many at once.
async def many():
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=60) as a:
        calls = [a.completions.create(model="dynamo", prompt=f"prompt {i}", max_tokens=8) for i in range(64)]
        return await asyncio.gather(*calls)


assert all(r.usage.completion_tokens == 8 for r in asyncio.run(many()))

# Faults: every request fails at first, and clients that try again are served
# in the end.
impatient = openai.OpenAI(base_url=faulty + "/v1", api_key="none", max_retries=0, timeout=60)
kinds = set()
for _ in range(20):
    try:
        impatient.completions.create(model="dynamo", prompt="x", max_tokens=2)
        kinds.add("served")
    except openai.InternalServerError as e:
        assert e.status_code == 503 and "--fault-error-rate" in e.message, e
        kinds.add("refused")
    except openai.APIConnectionError:
        kinds.add("broken")
assert kinds == {"served", "refused", "broken"}, kinds
for _ in range(5):
    patient = openai.OpenAI(base_url=faulty + "/v1", api_key="none", max_retries=20, timeout=60)
    assert patient.completions.create(model="dynamo", prompt="x", max_tokens=2).usage.completion_tokens == 2

# Time-outs: of a whole answer, and in the middle of a stream.
hasty = openai.OpenAI(base_url=slow + "/v1", api_key="none", max_retries=0, timeout=0.3)
fails(openai.APITimeoutError, lambda: hasty.completions.create(model="dynamo", prompt="x", max_tokens=1000))
stream = hasty.completions.create(model="dynamo", prompt="x", max_tokens=1000, stream=True, timeout=0.3)
try:
    for event in stream:
        assert event.choices
    raise RuntimeError("the stream did not stall")
except Exception as e:  # the HTTP library's own, or the client's
    assert "Timeout" in type(e).__name__, e
print("ok", openai.__version__)
