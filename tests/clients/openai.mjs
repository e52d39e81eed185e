// Drives the openai library as an application does.
import OpenAI from "openai";
import * as errors from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { TOOLS, attempt, describe, parsed, serve } from "./rpc.mjs";

const conversations = new Map();

function makeClient({ base, key, headers, retries, timeout }) {
	return new OpenAI({ apiKey: key, baseURL: base,
		maxRetries: retries, timeout, defaultHeaders: headers });
}

function tools(names) {
	return names.map((name) => ({ type: "function",
		function: { name, ...TOOLS[name] } }));
}

const usageOf = (u) => u ? { in: u.prompt_tokens, out: u.completion_tokens,
	total: u.total_tokens } : null;

function result(c, message, extra) {
	return { text: message.content ?? "", refusal: message.refusal ?? null,
		calls: (message.tool_calls ?? []).map((k) => ({ id: k.id,
			name: k.function.name, type: k.type,
			args: parsed(k.function.arguments),
			raw: k.function.arguments })), ...extra };
}

async function plain(c, body, state, options) {
	const { data, response, request_id } = await c.client.chat.completions
		.create(body, options).withResponse();
	const choice = data.choices[0];
	return [choice.message, { finish: choice.finish_reason,
		usage: usageOf(data.usage), id: data.id, model: data.model,
		object: data.object, request_id,
		headers: Object.fromEntries(response.headers.entries()) }];
}

// What the library's own example does with the raw chunks.
async function stream(c, body, state, options, emit) {
	const { data, response, request_id } = await c.client.chat.completions
		.create({ ...body, stream: true }, options).withResponse();
	const message = { role: "assistant", content: null };
	const seen = { finish: null, usage: null, ids: new Set(), order: [] };
	for await (const chunk of data) {
		seen.ids.add(chunk.id + chunk.model + chunk.object);
		seen.id = chunk.id;
		seen.model = chunk.model;
		seen.object = chunk.object;
		if (chunk.usage)
			seen.usage = usageOf(chunk.usage);
		seen.order.push(chunk.choices.length === 0 ? "usage" :
		    chunk.choices[0].finish_reason ?? "delta");
		const delta = chunk.choices[0]?.delta;
		if (!delta)
			continue;
		seen.finish = chunk.choices[0].finish_reason ?? seen.finish;
		if (delta.content) {
			message.content = (message.content ?? "") + delta.content;
			state.text += delta.content;
			state.deltas++;
			emit({ text: delta.content });
		}
		for (const d of delta.tool_calls ?? []) {
			message.tool_calls ??= [];
			const k = message.tool_calls[d.index] ??= { id: d.id,
				type: d.type, function: { name: "",
					arguments: "" } };
			k.function.name += d.function?.name ?? "";
			k.function.arguments += d.function?.arguments ?? "";
		}
	}
	return [message, { finish: seen.finish, usage: seen.usage, id: seen.id,
		model: seen.model, object: seen.object, identities: seen.ids.size,
		order: seen.order, request_id,
		headers: Object.fromEntries(response.headers.entries()) }];
}

async function helper(c, body, state, options, emit) {
	const runner = c.client.chat.completions.stream(body, options);
	const done = [];
	runner.on("content.delta", ({ delta }) => {
		state.text += delta;
		state.deltas++;
		emit({ text: delta });
	});
	runner.on("tool_calls.function.arguments.done",
	    (e) => done.push([e.index, e.name, e.arguments]));
	const whole = await runner.finalChatCompletion();
	const choice = whole.choices[0];
	// As it came, with what the library has added to it.
	return [choice.message, { finish: choice.finish_reason, done,
		usage: usageOf(whole.usage), id: whole.id, model: whole.model,
		object: whole.object }];
}

const modes = { plain, stream, helper };

async function say({ conv, text, results, mode, usage, extra, options,
    thin }, emit) {
	const c = conversations.get(conv);
	const news = [];
	for (const r of results ?? [])
		news.push({ role: "tool", tool_call_id: r.id,
			content: r.content });
	if (text !== undefined)
		news.push({ role: "user", content: text });
	c.messages.push(...news);
	const body = { model: c.model,
		messages: thin ?? c.thin ? [...c.system, ...news] : c.messages,
		...extra };
	if (c.tools.length > 0)
		body.tools = tools(c.tools);
	if (usage && mode !== "plain")
		body.stream_options = { include_usage: true };
	if (usage === false && mode !== "plain")
		body.stream_options = { include_usage: false };
	return attempt(async (state) => {
		const [message, more] = await modes[mode](c, body, state,
		    options, emit);
		c.messages.push(message);
		return { deltas: state.deltas, ...result(c, message, more) };
	});
}

async function open({ conv, model, system, tools, thin, ...rest }) {
	const messages = system ? [{ role: "system", content: system }] : [];
	conversations.set(conv, { client: makeClient(rest), model,
		tools: tools ?? [], thin, system: messages,
		messages: [...messages] });
}

serve({
	open, say,

	async models(p) {
		return attempt(async () => {
			const ids = [];
			const client = makeClient(p);
			for await (const m of client.models.list())
				ids.push(m.id);
			const one = await client.models.retrieve(p.model);
			return { ids, one };
		});
	},

	// Any parameters, as an application without types would send them.
	async raw({ body, mode, options, ...p }, emit) {
		const c = { client: makeClient(p) };
		return attempt(async (state) => {
			const [message, more] = await modes[mode](c, body, state,
			    options, emit);
			return { deltas: state.deltas,
				...result(c, message, more) };
		});
	},

	// The library runs the tools itself and sends everything each time.
	async runTools({ model, text, streamed, ...p }) {
		const ran = [];
		const tool = (name) => ({ type: "function", function: { name,
			...TOOLS[name], parse: JSON.parse, function: (args) => {
				ran.push([name, args]);
				return name + " is done";
			} } });
		return attempt(async () => {
			const runner = makeClient(p).chat.completions.runTools({
				model, stream: streamed,
				messages: [{ role: "user", content: text }],
				tools: Object.keys(TOOLS).map(tool) });
			const final = await runner.finalContent();
			return { text: final, ran,
				roles: runner.messages.map((m) => m.role) };
		});
	},

	async parse({ model, text, ...p }) {
		return attempt(async () => {
			const answer = await makeClient(p).chat.completions.parse({
				model,
				messages: [{ role: "user", content: text }],
				response_format: zodResponseFormat(z.object({
					city: z.string(), days: z.number() }),
				"trip") });
			return { parsed: answer.choices[0].message.parsed };
		});
	},

	// Leave after some deltas: by break, or by an abort signal.
	async leave({ model, text, how, after, ...p }) {
		return attempt(async (state) => {
			const controller = new AbortController();
			const answer = await makeClient(p).chat.completions.create(
			    { model, stream: true,
				messages: [{ role: "user", content: text }] },
			    { signal: controller.signal });
			for await (const chunk of answer) {
				const piece = chunk.choices[0]?.delta.content;
				if (!piece)
					continue;
				state.text += piece;
				if (++state.deltas < after)
					continue;
				if (how === "break")
					break;
				controller.abort();
			}
			return { ...state };
		});
	},

	// Many conversations at once over one client and its connections.
	async many({ model, texts, session, ...p }) {
		const client = makeClient(p);
		const one = async (text, i) => {
			const options = { headers: {
				"X-Holdfast-Session": session + i } };
			const body = { model,
				messages: [{ role: "user", content: text }] };
			if (i % 2 === 1)
				return (await client.chat.completions.create(body,
				    options)).choices[0].message.content;
			const runner = client.chat.completions.stream(body,
			    options);
			return runner.finalContent();
		};
		const settle = (p) => p.catch((e) => describe(e));
		return Promise.all(texts.map((t, i) => settle(one(t, i))));
	},

	// Which of the library's exported classes an error is an instance of.
	async kinds({ body, mode, options, ...p }) {
		const client = makeClient(p);
		try {
			if (mode === "stream") {
				const s = await client.chat.completions.create(
				    { ...body, stream: true }, options);
				for await (const chunk of s)
					void chunk;
			} else {
				await client.chat.completions.create(body, options);
			}
			return null;
		} catch (e) {
			const kinds = Object.keys(errors).filter((k) =>
				k.endsWith("Error") && e instanceof errors[k]);
			return { kinds, ...describe(e) };
		}
	},
});
