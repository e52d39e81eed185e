"""Strict request validators, after what the real APIs refuse with 400.

openai(headers, body) and anthropic(headers, body) return None or a pair
(status, message).  history(dialect, body) turns a valid request into one
list that is equal for equal conversations in either dialect:
    ("system", text) ("user", text) ("assistant", text)
    ("call", id, name, arguments as a parsed value) ("result", id, text)
"""
import json
import re

_OPENAI_TOP = set("""model messages max_tokens max_completion_tokens
temperature top_p stop stream stream_options tools tool_choice
parallel_tool_calls response_format reasoning_effort verbosity n seed
frequency_penalty presence_penalty logit_bias logprobs top_logprobs modalities
audio prediction user safety_identifier prompt_cache_key
prompt_cache_retention metadata store service_tier functions function_call
web_search_options""".split())
_OPENAI_MESSAGE = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "refusal", "tool_calls", "audio",
                  "name", "function_call"},
    "tool": {"role", "content", "tool_call_id"},
}
_OPENAI_PARTS = {
    "text": {"type", "text"},
    "image_url": {"type", "image_url"},
    "input_audio": {"type", "input_audio"},
    "file": {"type", "file"},
    "refusal": {"type", "refusal"},
}
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_ANTHROPIC_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


class Bad(Exception):
    def __init__(self, text, status=400):
        super().__init__(text)
        self.status = status


def _no_constant(name):
    raise Bad("We could not parse the JSON body of your request (%s)." % name)


def parse(body):
    """Strict JSON; no NaN or Infinity; no duplicate keys; UTF-8."""
    def pairs(items):
        keys = [k for k, v in items]
        if len(set(keys)) != len(keys):
            raise Bad("duplicate key in JSON body: %r" % keys)
        return dict(items)
    try:
        text = body.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant,
                           object_pairs_hook=pairs)
    except ValueError as e:
        raise Bad("We could not parse the JSON body of your request: %s" % e)
    if re.search("[\ud800-\udfff]", json.dumps(value, ensure_ascii=False)):
        raise Bad("invalid surrogate in string")
    return value


def _need(cond, text):
    if not cond:
        raise Bad(text)


def _keys(obj, allowed, where):
    extra = sorted(set(obj) - allowed)
    _need(not extra, "Unrecognized request argument supplied: %s (%s)" % (
        ", ".join(extra), where))


# --- openai -------------------------------------------------------------

def _openai_content(content, role, where):
    if isinstance(content, str):
        return
    _need(isinstance(content, list) and content,
          "Invalid value for '%s.content': expected a string or a non-empty "
          "array" % where)
    kinds = ({"text", "image_url", "input_audio", "file"} if role == "user"
             else {"text", "refusal"} if role == "assistant" else {"text"})
    for j, part in enumerate(content):
        at = "%s.content[%d]" % (where, j)
        _need(isinstance(part, dict), "Invalid type for '%s'" % at)
        kind = part.get("type")
        _need(kind in kinds, "Invalid value: %r. (%s)" % (kind, at))
        _keys(part, _OPENAI_PARTS[kind], at)
        _need(kind in part, "Missing required parameter: '%s.%s'" % (at, kind))
        if kind in ("text", "refusal"):
            _need(isinstance(part[kind], str), "Invalid type for '%s'" % at)


def _openai_calls(calls, where):
    _need(isinstance(calls, list) and calls,
          "[] is too short - '%s.tool_calls'" % where)
    ids = []
    for j, call in enumerate(calls):
        at = "%s.tool_calls[%d]" % (where, j)
        _need(isinstance(call, dict), "Invalid type for '%s'" % at)
        _keys(call, {"id", "type", "function"}, at)
        _need(isinstance(call.get("id"), str) and 0 < len(call["id"]) <= 40,
              "Invalid '%s.id': 1 to 40 characters" % at)
        _need(call.get("type") == "function", "Invalid '%s.type'" % at)
        fn = call.get("function")
        _need(isinstance(fn, dict), "Missing '%s.function'" % at)
        _keys(fn, {"name", "arguments"}, at + ".function")
        _need(isinstance(fn.get("name"), str) and _TOOL_NAME.match(fn["name"]),
              "Invalid '%s.function.name'" % at)
        _need(isinstance(fn.get("arguments"), str),
              "Invalid '%s.function.arguments': expected a string" % at)
        ids.append(call["id"])
    _need(len(set(ids)) == len(ids), "duplicate ids in '%s.tool_calls'" % where)
    return ids


def _openai_messages(messages):
    _need(isinstance(messages, list), "Missing required parameter: 'messages'")
    _need(messages, "Invalid 'messages': empty array.")
    pending, asked_at = [], None
    for i, m in enumerate(messages):
        where = "messages.[%d]" % i
        _need(isinstance(m, dict), "Invalid type for '%s'" % where)
        role = m.get("role")
        _need(role in _OPENAI_MESSAGE, "Invalid value: %r. '%s.role'" % (
            role, where))
        _keys(m, _OPENAI_MESSAGE[role], where)
        if role == "tool":
            _need(asked_at is not None and m.get("tool_call_id") in pending,
                  "Invalid parameter: messages with role 'tool' must be a "
                  "response to a preceding message with 'tool_calls'. (%s)"
                  % where)
            pending.remove(m["tool_call_id"])
            _need(m.get("content") is not None, "Missing '%s.content'" % where)
            _openai_content(m["content"], role, where)
            continue
        _need(not pending,
              "An assistant message with 'tool_calls' must be followed by "
              "tool messages responding to each 'tool_call_id'. The "
              "following tool_call_ids did not have response messages: %s "
              "(%s)" % (", ".join(pending), where))
        asked_at = None
        if role == "assistant":
            content = m.get("content")
            _need(content is not None or m.get("tool_calls") is not None or
                  m.get("refusal") is not None,
                  "Invalid value for 'content': expected a string, got null. "
                  "(%s)" % where)
            if content is not None:
                _openai_content(content, role, where)
            if "tool_calls" in m:
                pending = _openai_calls(m["tool_calls"], where)
                asked_at = i
        else:
            _need(m.get("content") is not None, "Missing '%s.content'" % where)
            _openai_content(m["content"], role, where)
        if "name" in m:
            _need(isinstance(m["name"], str), "Invalid '%s.name'" % where)
    _need(not pending, "tool_call_ids without response at the end: %s" %
          ", ".join(pending))


def _openai_tools(body):
    tools = body.get("tools")
    if tools is not None:
        _need(isinstance(tools, list) and tools, "[] is too short - 'tools'")
        for j, tool in enumerate(tools):
            at = "tools[%d]" % j
            _need(isinstance(tool, dict) and tool.get("type") == "function",
                  "Invalid '%s.type'" % at)
            _keys(tool, {"type", "function"}, at)
            fn = tool.get("function")
            _need(isinstance(fn, dict), "Missing '%s.function'" % at)
            _keys(fn, {"name", "description", "parameters", "strict"}, at)
            _need(isinstance(fn.get("name"), str) and
                  _TOOL_NAME.match(fn["name"]), "Invalid '%s.name'" % at)
            _need(isinstance(fn.get("parameters", {}), dict),
                  "Invalid '%s.parameters'" % at)
    for key in ("tool_choice", "parallel_tool_calls"):
        _need(key not in body or tools is not None,
              "'%s' is only allowed when 'tools' are specified." % key)


def _number(body, key, low, high):
    value = body.get(key)
    if value is None:
        return
    _need(isinstance(value, (int, float)) and not isinstance(value, bool) and
          low <= value <= high, "Invalid '%s': %r" % (key, value))


def openai(headers, raw):
    """headers: a dict with lower-case names."""
    try:
        auth = headers.get("authorization", "")
        _need(headers.get("content-type", "").split(";")[0].strip() ==
              "application/json", "you must send JSON")
        if not re.match(r"^Bearer \S+$", auth):
            raise Bad("You didn't provide an API key.", 401)
        body = parse(raw)
        _need(isinstance(body, dict), "the body must be an object")
        _keys(body, _OPENAI_TOP, "top level")
        _need(isinstance(body.get("model"), str) and body["model"],
              "you must provide a model parameter")
        _openai_messages(body.get("messages"))
        _openai_tools(body)
        _need(isinstance(body.get("stream", False), bool) or
              body["stream"] is None, "Invalid type for 'stream'")
        if body.get("stream_options") is not None:
            _need(body.get("stream") is True, "The 'stream_options' "
                  "parameter is only allowed when 'stream' is enabled.")
            _keys(body["stream_options"],
                  {"include_usage", "include_obfuscation"}, "stream_options")
        _number(body, "temperature", 0, 2)
        _number(body, "top_p", 0, 1)
        _number(body, "max_tokens", 1, 1 << 31)
        _number(body, "max_completion_tokens", 1, 1 << 31)
        _need("max_tokens" not in body or "max_completion_tokens" not in body,
              "Setting 'max_tokens' and 'max_completion_tokens' at the same "
              "time is not supported.")
    except Bad as e:
        return e.status, str(e)
    return None


# --- anthropic ----------------------------------------------------------

_ANTHROPIC_TOP = set("""model max_tokens messages system stop_sequences stream
temperature top_p top_k tools tool_choice thinking output_config metadata
cache_control service_tier""".split())
_ANTHROPIC_BLOCK = {
    "text": {"type", "text", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations",
                 "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error",
                    "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
_BY_ROLE = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


def _blocks(content, role, where):
    """The content as a list of checked blocks."""
    if isinstance(content, str):
        _need(content != "", "%s: text content blocks must be non-empty" %
              where)
        return [{"type": "text", "text": content}]
    _need(isinstance(content, list), "%s.content: Input should be a valid "
          "list" % where)
    _need(content, "%s: all messages must have non-empty content" % where)
    for j, block in enumerate(content):
        at = "%s.content.%d" % (where, j)
        _need(isinstance(block, dict), "%s: not an object" % at)
        kind = block.get("type")
        _need(kind in _BY_ROLE[role], "%s: Input tag %r is not allowed in a "
              "%s message" % (at, kind, role))
        extra = sorted(set(block) - _ANTHROPIC_BLOCK[kind])
        _need(not extra, "%s.%s: Extra inputs are not permitted" % (
            at, ", ".join(extra)))
        if kind == "text":
            _need(isinstance(block.get("text"), str) and
                  block["text"].strip() != "",
                  "%s: text content blocks must contain non-whitespace text"
                  % at)
        elif kind == "tool_use":
            _need(isinstance(block.get("id"), str) and
                  _ANTHROPIC_ID.match(block["id"]),
                  "%s.id: String should match pattern '^[a-zA-Z0-9_-]+$'" %
                  at)
            _need(isinstance(block.get("name"), str) and
                  _TOOL_NAME.match(block["name"]), "%s.name" % at)
            _need(isinstance(block.get("input"), dict),
                  "%s.input: Input should be a valid dictionary" % at)
        elif kind == "tool_result":
            _need(isinstance(block.get("tool_use_id"), str) and
                  _ANTHROPIC_ID.match(block["tool_use_id"]),
                  "%s.tool_use_id: String should match pattern" % at)
    return content


def _anthropic_messages(messages, prefill):
    _need(isinstance(messages, list), "messages: Field required")
    _need(messages, "messages: at least one message is required")
    pending, uses = [], False
    last = None
    for i, m in enumerate(messages):
        where = "messages.%d" % i
        _need(isinstance(m, dict), "%s: not an object" % where)
        extra = sorted(set(m) - {"role", "content"})
        _need(not extra, "%s.%s: Extra inputs are not permitted" % (
            where, ", ".join(extra)))
        role = m.get("role")
        _need(role in _BY_ROLE, "%s.role: Input should be 'user' or "
              "'assistant'" % where)
        _need(i > 0 or role == "user",
              "messages: first message must use the user role")
        _need(role != last, "messages: roles must alternate between user and "
              "assistant (%s)" % where)
        last = role
        blocks = _blocks(m.get("content"), role, where)
        results = [b["tool_use_id"] for b in blocks
                   if b["type"] == "tool_result"]
        if role == "user":
            head = [b["type"] for b in blocks[:len(results)]]
            _need(head == ["tool_result"] * len(results),
                  "%s: Did not find %d tool_result block(s) at the beginning "
                  "of this message" % (where, len(results)))
            missing = [x for x in pending if x not in results]
            _need(not missing, "%s: `tool_use` ids were found without "
                  "`tool_result` blocks immediately after: %s" % (
                      where, ", ".join(missing)))
            orphan = [x for x in results if x not in pending]
            _need(not orphan, "%s: unexpected `tool_use_id` found in "
                  "`tool_result` blocks: %s" % (where, ", ".join(orphan)))
            _need(len(set(results)) == len(results),
                  "%s: each tool_use must have a single result" % where)
            pending = []
        else:
            pending = [b["id"] for b in blocks if b["type"] == "tool_use"]
            _need(len(set(pending)) == len(pending),
                  "%s: `tool_use` ids must be unique" % where)
            uses = uses or bool(pending)
    _need(not pending, "tool_use ids without tool_result at the end: %s" %
          ", ".join(pending))
    _need(last == "user" or prefill, "This model does not support assistant "
          "message prefill. The conversation must end with a user message.")
    if last == "assistant":
        said = "".join(b.get("text", "") for b in blocks)
        _need(said == said.rstrip(), "messages: final assistant content "
              "cannot end with trailing whitespace")
    return uses


def anthropic(headers, raw, prefill=False):
    try:
        if not headers.get("x-api-key") and not re.match(
                r"^Bearer \S+$", headers.get("authorization", "")):
            raise Bad("x-api-key header is required", 401)
        _need(headers.get("content-type", "").split(";")[0].strip() ==
              "application/json", "content-type must be application/json")
        _need(headers.get("anthropic-version") == "2023-06-01",
              "anthropic-version: header is required")
        body = parse(raw)
        _need(isinstance(body, dict), "the body must be an object")
        extra = sorted(set(body) - _ANTHROPIC_TOP)
        _need(not extra, "%s: Extra inputs are not permitted" %
              ", ".join(extra))
        _need(isinstance(body.get("model"), str) and body["model"],
              "model: Field required")
        _need(isinstance(body.get("max_tokens"), int) and
              not isinstance(body["max_tokens"], bool) and
              body["max_tokens"] >= 1, "max_tokens: Field required")
        if "system" in body and not isinstance(body["system"], str):
            _need(isinstance(body["system"], list) and body["system"],
                  "system: Input should be a valid list")
            for j, b in enumerate(body["system"]):
                _need(isinstance(b, dict) and b.get("type") == "text" and
                      isinstance(b.get("text"), str) and b["text"],
                      "system.%d: text content blocks must be non-empty" % j)
                _need(not set(b) - _ANTHROPIC_BLOCK["text"],
                      "system.%d: Extra inputs are not permitted" % j)
        uses = _anthropic_messages(body.get("messages"), prefill)
        tools = body.get("tools")
        if tools is not None:
            _need(isinstance(tools, list), "tools: not a list")
            for j, tool in enumerate(tools):
                _need(not set(tool) - {"name", "description", "input_schema",
                                       "strict", "cache_control", "type"},
                      "tools.%d: Extra inputs are not permitted" % j)
                _need(isinstance(tool.get("name"), str) and
                      _TOOL_NAME.match(tool["name"]), "tools.%d.name" % j)
                schema = tool.get("input_schema")
                _need(isinstance(schema, dict) and
                      schema.get("type") == "object",
                      "tools.%d.input_schema.type: Field required" % j)
        _need(not uses or tools, "Requests which include `tool_use` or "
              "`tool_result` blocks must define tools")
        choice = body.get("tool_choice")
        if choice is not None:
            _need(tools, "tool_choice may only be specified while providing "
                  "tools")
            _need(isinstance(choice, dict) and choice.get("type") in
                  ("auto", "any", "none", "tool"), "tool_choice.type")
            _need(not set(choice) - {"type", "name",
                                     "disable_parallel_tool_use"},
                  "tool_choice: Extra inputs are not permitted")
        _number(body, "temperature", 0, 1)
        _number(body, "top_p", 0, 1)
        stops = body.get("stop_sequences", [])
        _need(isinstance(stops, list) and all(
            isinstance(x, str) and x.strip() for x in stops),
            "stop_sequences: each stop sequence must contain "
            "non-whitespace")
        metadata = body.get("metadata")
        _need(metadata is None or not set(metadata) - {"user_id"},
              "metadata: Extra inputs are not permitted")
    except Bad as e:
        return e.status, str(e)
    return None


# --- one form for both --------------------------------------------------

def text_of(content):
    """The text of a content that is a string or a list of text parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(p.get("text", "") for p in content
                   if p.get("type") in ("text", None))


def _arguments(text):
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


def history(dialect, body):
    out = []
    if dialect == "anthropic":
        system = body.get("system")
        if isinstance(system, str):
            out.append(("system", system))
        for block in system if isinstance(system, list) else []:
            out.append(("system", block["text"]))
        for m in body["messages"]:
            content = m["content"]
            if isinstance(content, str):
                out.append((m["role"], content))
                continue
            for b in content:
                if b["type"] == "text":
                    out.append((m["role"], b["text"]))
                elif b["type"] == "tool_use":
                    out.append(("call", b["id"], b["name"], b["input"]))
                elif b["type"] == "tool_result":
                    out.append(("result", b["tool_use_id"],
                                text_of(b.get("content"))))
        return out
    for m in body["messages"]:
        role = "system" if m["role"] == "developer" else m["role"]
        if role == "tool":
            out.append(("result", m["tool_call_id"], text_of(m["content"])))
            continue
        text = text_of(m.get("content"))
        if text or not m.get("tool_calls"):
            out.append((role, text))
        for call in m.get("tool_calls") or []:
            out.append(("call", call["id"], call["function"]["name"],
                        _arguments(call["function"]["arguments"])))
    return out
