// Drives LangChain's ChatOpenAI on chat completions.
import { AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage }
    from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import { TOOLS, attempt, describe, serve } from "./rpc.mjs";

const conversations = new Map();

function makeModel({ base, key, headers, retries, timeout, model, ...more }) {
	return new ChatOpenAI({ model, apiKey: key, maxRetries: retries,
		timeout, configuration: { baseURL: base,
			defaultHeaders: headers }, ...more });
}

function tools(names) {
	return names.map((name) => ({ type: "function",
		function: { name, ...TOOLS[name] } }));
}

function result(message, deltas) {
	const u = message.usage_metadata;
	return { text: message.text, deltas,
		calls: (message.tool_calls ?? []).map((k) => ({ id: k.id,
			name: k.name, args: k.args, type: k.type })),
		invalid: message.invalid_tool_calls ?? [],
		finish: message.response_metadata.finish_reason,
		model: message.response_metadata.model_name,
		id: message.id, ai: AIMessage.isInstance(message) ||
		    AIMessageChunk.isInstance(message),
		usage: u ? { in: u.input_tokens, out: u.output_tokens,
			total: u.total_tokens } : null };
}

async function stream(model, messages, state, emit) {
	let whole;
	for await (const chunk of await model.stream(messages)) {
		whole = whole === undefined ? chunk : whole.concat(chunk);
		if (chunk.text === "")
			continue;
		state.text += chunk.text;
		state.deltas++;
		emit({ text: chunk.text });
	}
	return whole;
}

serve({
	async open({ conv, system, tools: names, thin, ...rest }) {
		const messages = system ? [new SystemMessage(system)] : [];
		let model = makeModel({ ...rest });
		if (names && names.length > 0)
			model = model.bindTools(tools(names));
		conversations.set(conv, { model, thin, system: messages,
			messages: [...messages] });
	},

	async say({ conv, text, results, mode, thin }, emit) {
		const c = conversations.get(conv);
		const news = (results ?? []).map((r) => new ToolMessage({
			tool_call_id: r.id, content: r.content }));
		if (text !== undefined)
			news.push(new HumanMessage(text));
		c.messages.push(...news);
		const messages = thin ?? c.thin ? [...c.system, ...news] : c.messages;
		return attempt(async (state) => {
			const message = mode === "plain" ?
			    await c.model.invoke(messages) :
			    await stream(c.model, messages, state, emit);
			c.messages.push(message);
			return result(message, state.deltas);
		});
	},

	async structured({ text, method, ...p }) {
		return attempt(async () => {
			const model = makeModel(p).withStructuredOutput(z.object({
				city: z.string(), days: z.number() }),
			{ name: "trip", method });
			return { value: await model.invoke(text) };
		});
	},

	async batch({ texts, ...p }) {
		return attempt(async () => ({
			texts: (await makeModel(p).batch(texts)).map((m) => m.text)
		}));
	},

	async many({ texts, session, ...p }) {
		return Promise.all(texts.map(async (text, i) => {
			const model = makeModel({ ...p, headers: {
				"X-Holdfast-Session": session + i } });
			const state = { text: "", deltas: 0 };
			try {
				const m = i % 2 === 1 ?
				    await model.invoke(text) :
				    await stream(model, text, state, () => {});
				return m.text;
			} catch (e) {
				return describe(e);
			}
		}));
	},
});
