// Drives the AI SDK with its openai provider on chat completions.
import { createOpenAI } from "@ai-sdk/openai";
import { Output, generateText, jsonSchema, stepCountIs, streamText, tool }
    from "ai";
import { z } from "zod";
import { TOOLS, attempt, describe, serve } from "./rpc.mjs";

// Warnings of the SDK (a model "does not support" a setting) go to stdout.
globalThis.AI_SDK_LOG_WARNINGS = false;

const conversations = new Map();

function makeModel({ base, key, headers, model }) {
	return createOpenAI({ baseURL: base, apiKey: key, headers }).chat(model);
}

function tools(names, execute) {
	return Object.fromEntries(names.map((name) => [name, tool({
		description: TOOLS[name].description,
		inputSchema: jsonSchema(TOOLS[name].parameters),
		...(execute ? { execute: (args) => execute(name, args) } : {}),
	})]));
}

const finishes = { "tool-calls": "tool_calls",
	"content-filter": "content_filter" };

// r: the fields of a result, whole or streamed, awaited.
function result(r, deltas) {
	return { text: r.text, deltas,
		calls: r.toolCalls.map((k) => ({ id: k.toolCallId,
			name: k.toolName, args: k.input, invalid: !!k.invalid })),
		finish: finishes[r.finishReason] ?? r.finishReason,
		usage: { in: r.usage.inputTokens, out: r.usage.outputTokens,
			total: r.usage.totalTokens },
		id: r.response.id, model: r.response.modelId };
}

// The stream's errors come as parts, not as exceptions.
async function stream(request, state, emit) {
	const r = streamText({ ...request, onError: () => {} });
	let error;
	const parts = [];
	for await (const part of r.fullStream) {
		parts.push(part.type);
		if (part.type === "error")
			error = part.error;
		if (part.type !== "text-delta")
			continue;
		state.text += part.text;
		state.deltas++;
		emit({ text: part.text });
	}
	if (error !== undefined)
		throw error instanceof Error ? error :
		    Object.assign(new Error("error part"), { data: error });
	return { text: await r.text, toolCalls: await r.toolCalls, parts,
		finishReason: await r.finishReason, usage: await r.usage,
		response: await r.response, steps: await r.steps };
}

const run = (mode, request, state, emit = () => {}) =>
	mode === "plain" ? generateText(request) : stream(request, state, emit);

serve({
	async open({ conv, system, tools: names, thin, retries, settings,
	    ...rest }) {
		conversations.set(conv, { model: makeModel(rest), system, thin,
			retries, settings, messages: [],
			tools: tools(names ?? []) });
	},

	async say({ conv, text, results, mode, thin }, emit) {
		const c = conversations.get(conv);
		const news = [];
		if (results)
			news.push({ role: "tool", content: results.map((r) => ({
				type: "tool-result", toolCallId: r.id,
				toolName: c.names[r.id],
				output: { type: "text", value: r.content } })) });
		if (text !== undefined)
			news.push({ role: "user", content: text });
		c.messages.push(...news);
		const request = { ...c.settings, model: c.model, maxRetries: c.retries,
			system: c.system, tools: c.tools,
			messages: thin ?? c.thin ? news : [...c.messages] };
		return attempt(async (state) => {
			const r = await run(mode, request, state, emit);
			c.names = Object.fromEntries(r.toolCalls.map((k) =>
				[k.toolCallId, k.toolName]));
			c.messages.push(...r.response.messages);
			return result(r, state.deltas);
		});
	},

	// The SDK runs the tools itself and sends everything each time.
	async loop({ text, mode, retries, ...p }) {
		const ran = [];
		return attempt(async (state) => {
			const r = await run(mode, { model: makeModel(p),
				maxRetries: retries, prompt: text,
				stopWhen: stepCountIs(5),
				tools: tools(Object.keys(TOOLS), (name, args) => {
					ran.push([name, args]);
					return name + " is done";
				}) }, state);
			return { text: r.text, ran, steps: r.steps.length };
		});
	},

	async structured({ text, retries, ...p }) {
		return attempt(async () => {
			const r = await generateText({ model: makeModel(p),
				maxRetries: retries, prompt: text,
				output: Output.object({ schema: z.object({
					city: z.string(), days: z.number() }) }) });
			return { value: r.output };
		});
	},

	async many({ texts, session, retries, ...p }) {
		return Promise.all(texts.map(async (text, i) => {
			const request = { prompt: text, maxRetries: retries,
				model: makeModel({ ...p, headers: {
					"X-Holdfast-Session": session + i } }) };
			try {
				const r = await run(i % 2 === 1 ? "plain" :
				    "stream", request, { text: "", deltas: 0 });
				return r.text;
			} catch (e) {
				return describe(e);
			}
		}));
	},
});
