// What the drivers of all client libraries share: JSON lines on stdin and
// stdout, the tools that conversations may use, and errors as plain data.
import net from "node:net";
import readline from "node:readline";

// Nothing here may talk to anything but this machine.
const foreign = new Set();
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
	const o = Array.isArray(args[0]) ? args[0][0] : args[0];
	const host = (o && o.host) || "localhost";
	if (o && !o.path && !["127.0.0.1", "localhost"].includes(host)) {
		foreign.add(host);
		throw new Error("a client wanted to reach " + host);
	}
	return connect.apply(this, args);
};

// stdout is ours.
console.log = console.info = console.debug = console.error;

// serve({op: async (params, emit) => result}); emit(value) tells the test
// something before the call has ended.
export function serve(ops) {
	const send = (v) => process.stdout.write(JSON.stringify(v) + "\n");
	const lines = readline.createInterface({ input: process.stdin });
	lines.on("line", async (line) => {
		const { n, op, ...params } = JSON.parse(line);
		try {
			const emit = (event) => send({ n, event });
			send({ n, result: await ops[op](params, emit) });
		} catch (e) {
			send({ n, bug: String(e && e.stack) });
		}
	});
	lines.on("close", () => process.exit(foreign.size > 0 ? 3 : 0));
	ops.foreign = async () => [...foreign];
	send({ n: 0, result: process.version });
}

// The JSON Schema of each tool; look takes nothing.
export const TOOLS = {
	look: { description: "Look around",
		parameters: { type: "object", properties: {} } },
	weather: { description: "The weather of a city",
		parameters: { type: "object",
			properties: { city: { type: "string" } },
			required: ["city"] } },
	order: { description: "Order some of an article",
		parameters: { type: "object",
			properties: { id: { type: "string" },
				qty: { type: "integer" } },
			required: ["id", "qty"] } },
};

function classes(e) {
	const out = [];
	for (let p = Object.getPrototypeOf(e); p && p.constructor !== Object;
	    p = Object.getPrototypeOf(p))
		out.push(p.constructor.name);
	return out;
}

function plainHeaders(h) {
	if (!h)
		return {};
	return typeof h.entries === "function" ?
	    Object.fromEntries(h.entries()) : h;
}

// An error as the application could look at it.
export function describe(e, depth = 0) {
	if (!e || typeof e !== "object")
		return { message: String(e), classes: [] };
	const out = { name: e.name, classes: classes(e), message: e.message };
	for (const k of ["status", "statusCode", "code", "type", "param",
	    "requestID", "isRetryable", "lc_error_code", "reason", "data",
	    "partial"])
		if (e[k] !== undefined)
			out[k] = e[k];
	out.headers = plainHeaders(e.headers || e.responseHeaders);
	for (const k of ["cause", "lastError"])
		if (e[k] && depth < 3)
			out[k] = describe(e[k], depth + 1);
	return out;
}

// Run one call of a library; an error becomes {error, text so far}.
export async function attempt(fn) {
	const state = { text: "", deltas: 0 };
	try {
		return { error: null, ...state, ...await fn(state) };
	} catch (e) {
		return { ...state, error: describe(e) };
	}
}

export function parsed(text) {
	try {
		return JSON.parse(text);
	} catch {
		return { unparsable: text };
	}
}
