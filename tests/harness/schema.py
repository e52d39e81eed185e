"""Just enough of JSON Schema 2020-12 for our own schemas; a keyword that is not
known here is an error, so that none is passed over."""

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and
    not isinstance(v, bool),
}
TELL = {"$schema", "title", "description", "$defs"}


def _kind(at, value, want, out):
    want = want if isinstance(want, list) else [want]
    if not any(TYPES[t](value) for t in want):
        out.append("%s: is %.60r, not %s" % (at, value, " or ".join(want)))


def _object(at, value, schema, root, out):
    known = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            out.append("%s: lacks %s" % (at, name))
    for name, v in value.items():
        more = known.get(name, schema.get("additionalProperties", True))
        if more is False:
            out.append("%s: has %s, which is unknown" % (at, name))
        elif more is not True:
            _check("%s.%s" % (at, name), v, more, root, out)


def _array(at, value, schema, root, out):
    if not schema.get("minItems", 0) <= len(value) <= schema.get(
            "maxItems", len(value)):
        out.append("%s: has %d items" % (at, len(value)))
    for i, v in enumerate(value):
        if "items" in schema:
            _check("%s[%d]" % (at, i), v, schema["items"], root, out)


def _check(at, value, schema, root, out):
    for word, arg in schema.items():
        if word == "$ref":
            name = arg.rsplit("/", 1)[1]
            assert arg == "#/$defs/" + name, arg
            _check(at, value, root["$defs"][name], root, out)
        elif word == "type":
            _kind(at, value, arg, out)
        elif word == "const":
            if value != arg or isinstance(value, bool) != isinstance(
                    arg, bool):
                out.append("%s: is %.60r, not %r" % (at, value, arg))
        elif word == "enum":
            if value not in arg:
                out.append("%s: is %.60r, none of %r" % (at, value, arg))
        elif word == "minimum":
            if TYPES["number"](value) and value < arg:
                out.append("%s: %r is below %r" % (at, value, arg))
        elif word == "maximum":
            if TYPES["number"](value) and value > arg:
                out.append("%s: %r is above %r" % (at, value, arg))
        elif word == "anyOf":
            tries = []
            for one in arg:
                tries.append([])
                _check(at, value, one, root, tries[-1])
            if all(tries):
                out.extend(min(tries, key=len))
        elif word in ("properties", "required", "additionalProperties",
                      "items", "minItems", "maxItems"):
            pass
        elif word not in TELL:
            raise AssertionError("schema: unknown keyword " + word)
    if isinstance(value, dict):
        _object(at, value, schema, root, out)
    elif isinstance(value, list):
        _array(at, value, schema, root, out)


def errors(value, schema):
    """What is wrong with it, a line each; empty: nothing."""
    out = []
    _check("$", value, schema, schema, out)
    return out
