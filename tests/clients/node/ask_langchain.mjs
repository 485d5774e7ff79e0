// What LangChain.js sees, streamed and whole. It ignores annotations: links are in the text.
import { ChatOpenAI } from "@langchain/openai";

const [baseURL, question] = process.argv.slice(2);
const model = new ChatOpenAI({
  model: "cairn",
  apiKey: "none",
  maxRetries: 0,
  configuration: { baseURL },
  modelKwargs: { profile: "markdown-links" },
});
const seen = (message) => ({
  reasoning: message.additional_kwargs.reasoning_content,
  answer: message.text,
  tokens: message.usage_metadata.output_tokens,
});

let gathered;
for await (const chunk of await model.stream(question)) gathered = gathered ? gathered.concat(chunk) : chunk;
const whole = await model.invoke(question);
process.stdout.write(JSON.stringify({ streamed: seen(gathered), whole: seen(whole) }));
