"""What providers say: answers and errors in the openai and anthropic words.

Plain answers are one body; streams are a list of byte strings, one for each
event, so that a script can stop after any of them.
"""
import itertools
import json
import time

_ids = itertools.count(1)


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Said:
    """An answer: text, tool calls [(id, name, arguments text)], finish."""

    def __init__(self, text="", calls=(), finish=None, pieces=None,
                 usage=(31, 6), model=None):
        self.text = text
        self.calls = list(calls)
        self.finish = finish or ("tool_calls" if calls else "stop")
        self.pieces = pieces if pieces is not None else split(text)
        self.usage = usage
        self.model = model


def split(text, size=None):
    """Cut a text into stream deltas at word ends (or every 'size')."""
    if size:
        return [text[i:i + size] for i in range(0, len(text), size)]
    out = []
    for word in text.split(" "):
        out.append(word if not out else " " + word)
    return [p for p in out if p]


_STOP = {"stop": "end_turn", "length": "max_tokens",
         "tool_calls": "tool_use", "content_filter": "refusal"}


# --- openai -------------------------------------------------------------

def openai_plain(said, model):
    message = {"role": "assistant", "content": said.text or None,
               "refusal": None, "annotations": []}
    if not said.calls and said.text == "":
        message["content"] = ""
    if said.calls:
        message["tool_calls"] = [
            {"id": i, "type": "function",
             "function": {"name": n, "arguments": a}}
            for i, n, a in said.calls]
    prompt, completion = said.usage
    return compact({
        "id": "chatcmpl-up%06d" % next(_ids), "object": "chat.completion",
        "created": int(time.time()), "model": said.model or model,
        "service_tier": "default", "system_fingerprint": "fp_upstream",
        "choices": [{"index": 0, "finish_reason": said.finish,
                     "logprobs": None, "message": message}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion,
                  "total_tokens": prompt + completion}}).encode()


def openai_stream(said, model, usage):
    ident = "chatcmpl-up%06d" % next(_ids)
    created = int(time.time())

    def chunk(delta, finish=None):
        value = {"id": ident, "object": "chat.completion.chunk",
                 "created": created, "model": said.model or model,
                 "choices": [{"index": 0, "delta": delta, "logprobs": None,
                              "finish_reason": finish}]}
        if usage:
            value["usage"] = None
        return compact(value)

    out = [chunk({"role": "assistant", "content": "", "refusal": None})]
    for piece in said.pieces:
        out.append(chunk({"content": piece}))
    for index, (ident_, name, args) in enumerate(said.calls):
        out.append(chunk({"tool_calls": [
            {"index": index, "id": ident_, "type": "function",
             "function": {"name": name, "arguments": ""}}]}))
        for piece in split(args, 7):
            out.append(chunk({"tool_calls": [
                {"index": index, "function": {"arguments": piece}}]}))
    out.append(chunk({}, said.finish))
    if usage:
        prompt, completion = said.usage
        out.append(compact({
            "id": ident, "object": "chat.completion.chunk",
            "created": created, "model": said.model or model, "choices": [],
            "usage": {"prompt_tokens": prompt,
                      "completion_tokens": completion,
                      "total_tokens": prompt + completion}}))
    out.append("[DONE]")
    return ["data: %s\n\n" % x for x in out]


def openai_error(status, message, kind=None, code=None, param=None):
    kinds = {400: "invalid_request_error", 401: "invalid_request_error",
             404: "invalid_request_error", 429: "requests"}
    codes = {401: "invalid_api_key", 404: "model_not_found",
             429: "rate_limit_exceeded"}
    return {"error": {"message": message,
                      "type": kind or kinds.get(status, "server_error"),
                      "param": param, "code": code or codes.get(status)}}


# --- anthropic ----------------------------------------------------------

def anthropic_plain(said, model):
    content = [{"type": "text", "text": said.text}] if said.text else []
    for i, n, a in said.calls:
        content.append({"type": "tool_use", "id": i, "name": n,
                        "input": json.loads(a or "{}")})
    return compact({
        "id": "msg_up%06d" % next(_ids), "type": "message",
        "role": "assistant", "model": said.model or model,
        "content": content, "stop_reason": _STOP[said.finish],
        "stop_sequence": None,
        "usage": {"input_tokens": said.usage[0],
                  "cache_creation_input_tokens": 0,
                  "cache_read_input_tokens": 0,
                  "output_tokens": said.usage[1]}}).encode()


def _named(value):
    return "event: %s\ndata: %s   \n\n" % (value["type"], compact(value))


def anthropic_stream(said, model, usage=True):
    out = [_named({"type": "message_start", "message": {
        "id": "msg_up%06d" % next(_ids), "type": "message",
        "role": "assistant", "model": said.model or model, "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": said.usage[0],
                  "cache_creation_input_tokens": 0,
                  "cache_read_input_tokens": 0, "output_tokens": 1}}})]
    index = 0
    if said.pieces:
        out.append(_named({"type": "content_block_start", "index": 0,
                           "content_block": {"type": "text", "text": ""}}))
        out.append(_named({"type": "ping"}))
        for piece in said.pieces:
            out.append(_named({"type": "content_block_delta", "index": 0,
                               "delta": {"type": "text_delta",
                                         "text": piece}}))
        out.append(_named({"type": "content_block_stop", "index": 0}))
        index = 1
    for i, n, a in said.calls:
        out.append(_named({"type": "content_block_start", "index": index,
                           "content_block": {"type": "tool_use", "id": i,
                                             "name": n, "input": {}}}))
        if a not in ("", "{}"):
            for piece in split(a, 7):
                out.append(_named({
                    "type": "content_block_delta", "index": index,
                    "delta": {"type": "input_json_delta",
                              "partial_json": piece}}))
        out.append(_named({"type": "content_block_stop", "index": index}))
        index += 1
    out.append(_named({"type": "message_delta",
                       "delta": {"stop_reason": _STOP[said.finish],
                                 "stop_sequence": None},
                       "usage": {"output_tokens": said.usage[1]}}))
    out.append(_named({"type": "message_stop"}))
    return out


def anthropic_error(status, message, kind=None, code=None, param=None):
    kinds = {400: "invalid_request_error", 401: "authentication_error",
             403: "permission_error", 404: "not_found_error",
             413: "request_too_large", 429: "rate_limit_error",
             500: "api_error", 529: "overloaded_error"}
    return {"type": "error",
            "error": {"type": kind or kinds.get(status, "api_error"),
                      "message": message},
            "request_id": "req_up%06d" % next(_ids)}


# --- either -------------------------------------------------------------

def plain(dialect, said, model):
    if dialect == "anthropic":
        return anthropic_plain(said, model)
    return openai_plain(said, model)


def stream(dialect, said, model, usage):
    """The events of a stream as byte strings."""
    make = anthropic_stream if dialect == "anthropic" else openai_stream
    return [e.encode() for e in make(said, model, usage)]


def error(dialect, status, message, **more):
    make = anthropic_error if dialect == "anthropic" else openai_error
    return compact(make(status, message, **more)).encode()


def error_event(dialect, status, message):
    make = anthropic_error if dialect == "anthropic" else openai_error
    prefix = "event: error\n" if dialect == "anthropic" else ""
    return (prefix + "data: " + compact(make(status, message)) +
            "\n\n").encode()


def first_useful(dialect):
    """How many events of a text stream come before its first text."""
    return 3 if dialect == "anthropic" else 1
