// What the AI SDK sees through @ai-sdk/openai-compatible, streamed and whole. It ignores annotations: links are in the text.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";

const [baseURL, question] = process.argv.slice(2);
const cairn = createOpenAICompatible({ name: "cairn", baseURL, apiKey: "none", includeUsage: true });
const request = {
  model: cairn("cairn"),
  prompt: question,
  maxRetries: 0,
  providerOptions: { cairn: { profile: "markdown-links" } },
};

const failures = [];
const stream = streamText({ ...request, onError: ({ error }) => failures.push(String(error)) });
let reasoning = "";
let answer = "";
let order = "";
for await (const part of stream.fullStream) {
  if (part.type === "reasoning-delta") {
    reasoning += part.text;
    order += "r";
  }
  if (part.type === "text-delta") {
    answer += part.text;
    order += "t";
  }
  if (part.type === "error") failures.push(String(part.error));
}
const usage = await stream.usage;
const whole = await generateText(request);
process.stdout.write(
  JSON.stringify({
    failures,
    ordered: /^r+t+$/.test(order),
    streamed: { reasoning, answer, tokens: usage.outputTokens },
    whole: {
      reasoning: whole.reasoningText,
      answer: whole.text,
      tokens: whole.usage.outputTokens,
    },
  }),
);
