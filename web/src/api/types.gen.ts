// Made of schema.json by tools/types.mjs; sha256 of it: fdf652b507f433f487f6758de2d071cf6a5c91c2d753391bd53ec142cbe88947

/**
 * Made by `python -m server.ui.types`.
 */
export interface Api {
Trace: Trace
Delta: Delta
RunCard: RunCard
RunPage: RunPage
RunDetail: RunDetail
PageFacts: PageFacts
EvidenceBundle: EvidenceBundle
RunEvidence: RunEvidence
RunAnswer: RunAnswer
ErrorBody: ErrorBody
FileObject: FileObject
LibraryObject: LibraryObject
LibraryList: LibraryList
LibraryFileObject: LibraryFileObject
LibraryFileList: LibraryFileList
DocumentText: DocumentText
SettingsPage: SettingsPage
CheckedSettings: CheckedSettings
ReportCard: ReportCard
ReportPage: ReportPage
ReportDetail: ReportDetail
RunRequest: RunRequest
ReportRequest: ReportRequest
AnswerWithRequest: AnswerWithRequest
SettingsChange: SettingsChange
}
/**
 * One rollout for one user turn. Only `agent.loop.agent` writes to it.
 */
export interface Trace {
version: 1
id: string
conversation: string
history: unknown[][]
question: string
filters?: Filter[]
only?: string[]
libraries?: string[]
files?: string[]
library_state?: string
follow_up?: (FollowedUp | null)
protocol: string
policy: string
seed: number
segments: Segment[]
steps: (Thought | Restated | Planned | PlanRejected | Filled | Searched | SearchFailed | Skipped | Gathered | Merged | Reflected | Evidenced | Answered | Stopped)[]
branches: {
[k: string]: Branch
}
passages: Passage[]
infrastructure: boolean
usage: Usage
timings: Timings
rungs?: RungUsed[]
versions: {
[k: string]: string
}
}
/**
 * A condition on what a node may find.
 * 
 * after|before a date (2026, 2026-01 or 2026-01-31), site|not a host, recent day|week|month|year, lang a code of two
 * letters, kind general|news|science|finance.
 */
export interface Filter {
name: string
value: string
}
/**
 * What a question changes of the one before it, and what is used again.
 */
export interface FollowedUp {
text: string
history?: unknown[][]
run: string
claim: string
context: ("summary" | "evidence" | "all")
}
/**
 * A piece of the context. The loss mask is `by == "policy"`; nothing else marks it.
 */
export interface Segment {
branch: string
by: ("prompt" | "policy" | "environment" | "loop")
text: string
ids: (number[] | null)
logprobs: (number[] | null)
}
export interface Thought {
segments: number[]
seconds: number
kind: "thought"
text: string
}
/**
 * The question as the policy put it, so that it can be understood without the turns before it.
 */
export interface Restated {
segments: number[]
seconds: number
kind: "restated"
text: string
}
export interface Planned {
segments: number[]
seconds: number
kind: "planned"
round: number
plan: Plan
}
/**
 * Nodes in an order in which they can run: parents come before children.
 */
export interface Plan {
nodes: Node[]
dropped: string[]
}
/**
 * One query to one source.
 */
export interface Node {
id: string
query: string
source: string
parents: string[]
filters: Filter[]
entities: string[]
relations: string[]
written: string
}
export interface PlanRejected {
segments: number[]
seconds: number
kind: "plan_rejected"
round: number
text: string
why: string
}
/**
 * The policy rewrote a node's query with what its parents found; `segments` are those of its branch.
 * 
 * The event that reports it as it happens has none yet: a branch is written onto the trace when its round has ended.
 * Its name, `ROUND.NODE`, is known from the start.
 */
export interface Filled {
segments: number[]
seconds: number
kind: "filled"
round: number
node: string
query: string
}
/**
 * A node found something, or honestly nothing (`passages` is empty).
 */
export interface Searched {
segments: number[]
seconds: number
kind: "searched"
round: number
node: string
source: string
query: string
passages: Passage[]
took: number
note: string
backend: string
cached: ("" | "fresh" | "stale" | "reused")
credits: number
usd: number
failures: Failure[]
lost?: string[]
}
/**
 * One piece of text from one source. `number` is set where it was shown to the policy.
 */
export interface Passage {
id: string
source: string
title: string
text: string
url: string
date: string
score: number
rank: number
node: string
number: number
}
/**
 * How one backend failed on the way to an answer, or to none.
 */
export interface Failure {
backend: string
kind: ("auth" | "quota" | "rate" | "bad_query" | "upstream" | "timeout" | "parse")
why: string
took: number
}
export interface SearchFailed {
segments: number[]
seconds: number
kind: "search_failed"
round: number
node: string
source: string
query: string
why: string
error: string
took: number
failures: Failure[]
credits?: number
usd?: number
}
/**
 * A node was not searched; `segments` are those of the fill that skipped it (see `Filled`), or of the plan.
 */
export interface Skipped {
segments: number[]
seconds: number
kind: "skipped"
round: number
node: string
why: string
}
/**
 * The numbered passages that the policy was shown in this round.
 */
export interface Gathered {
segments: number[]
seconds: number
kind: "gathered"
round: number
passages: Passage[]
dropped: number
imitated?: number[]
}
export interface Merged {
segments: number[]
seconds: number
kind: "merged"
text: string
claims: Claim[]
}
/**
 * One sentence of the evidence block with the numbers of the passages that it cites.
 */
export interface Claim {
text: string
cites: number[]
check: ("unchecked" | "verbatim" | "close" | "not_found" | "contradicted")
derived: boolean
quotes: Quote[]
ambiguous?: number[]
}
/**
 * Words of a cited passage that support a claim: `text` is `passage.text[start:end]`.
 */
export interface Quote {
number: number
start: number
end: number
text: string
}
export interface Reflected {
segments: number[]
seconds: number
kind: "reflected"
text: string
claims: Claim[]
}
export interface Evidenced {
segments: number[]
seconds: number
kind: "evidenced"
text: string
claims: Claim[]
}
export interface Answered {
segments: number[]
seconds: number
kind: "answered"
text: string
by: ("policy" | "loop")
}
export interface Stopped {
segments: number[]
seconds: number
kind: "stopped"
reason: ("answered" | "forced" | "bad_format" | "cancelled" | "engine" | "interrupted")
budget: (("rounds" | "searches" | "passages" | "policy_tokens" | "context" | "seconds" | "credits" | "user") | null)
detail: string
}
/**
 * A fork of the context. What it holds: its parent's context up to the fork, then its own segments.
 */
export interface Branch {
parent: string
segment: number
node: string
}
/**
 * What the rollout used. Tokens are the engine's own count, or an estimate by characters where it gives none.
 */
export interface Usage {
prompt_tokens: number
policy_tokens: number
answer_tokens: number
environment_tokens: number
rounds: number
searches: number
passages: number
credits: number
usd: number
}
/**
 * Seconds of wall time.
 */
export interface Timings {
total: number
policy: number
search: number
first_token: (number | null)
answer: (number | null)
}
/**
 * How a general model was spoken to from here on, and why so.
 */
export interface RungUsed {
rung: ("tools" | "json" | "words" | "plain")
why: string
}
/**
 * Text on its way. `role` is the role of its block: thought (also untagged text), search, merge, and so on.
 */
export interface Delta {
kind: "delta"
role: string
text: string
}
/**
 * A run without its trace.
 */
export interface RunCard {
id: string
conversation: string
question: string
/**
 * Null while it runs, and where there is none.
 */
answer: (string | null)
/**
 * running, or why it stopped, as `stopped.reason` in its trace.
 */
state: ("running" | ("answered" | "forced" | "bad_format" | "cancelled" | "engine" | "interrupted"))
/**
 * api: started here; v1: a request of /v1, kept when it had ended.
 */
origin: ("api" | "v1")
model: string
protocol: string
policy: string
created: string
ended: (string | null)
seconds: number
rounds: number
searches: number
passages: number
/**
 * Prompt, what the environment wrote, and what the policy sampled.
 */
tokens: number
credits: number
usd: number
}
/**
 * Runs, the latest first.
 */
export interface RunPage {
runs: RunCard[]
/**
 * What `before` must say for the next page; null on the last one.
 */
next: (string | null)
}
/**
 * A run with its trace; of one that still runs, as far as it is stored.
 */
export interface RunDetail {
id: string
conversation: string
question: string
/**
 * Null while it runs, and where there is none.
 */
answer: (string | null)
/**
 * running, or why it stopped, as `stopped.reason` in its trace.
 */
state: ("running" | ("answered" | "forced" | "bad_format" | "cancelled" | "engine" | "interrupted"))
/**
 * api: started here; v1: a request of /v1, kept when it had ended.
 */
origin: ("api" | "v1")
model: string
protocol: string
policy: string
created: string
ended: (string | null)
seconds: number
rounds: number
searches: number
passages: number
/**
 * Prompt, what the environment wrote, and what the policy sampled.
 */
tokens: number
credits: number
usd: number
trace: Trace
}
/**
 * What a page must know before it can ask.
 */
export interface PageFacts {
version: string
policy: string
/**
 * The one behind the model id `cairn`.
 */
protocol: string
models: string[]
sources: string[]
/**
 * Other models that may answer from our evidence.
 */
answer_models: string[]
/**
 * What a person should know before believing an answer.
 */
notices: string[]
/**
 * Whether keys, sources and the model can be set here.
 */
settings: boolean
/**
 * Whether files can be uploaded.
 */
libraries: boolean
/**
 * Of the files that are read.
 */
suffixes: string[]
/**
 * A larger file is refused.
 */
file_bytes: number
/**
 * Questions that can be answered here.
 */
examples: string[]
/**
 * What could write instead; empty where a model is connected, or other machines are served.
 */
local_models: LocalModels[]
}
/**
 * A model server that runs on the machine of this one.
 */
export interface LocalModels {
/**
 * What it is, for example Ollama.
 */
server: string
base_url: string
models: string[]
/**
 * Serves Cairn with the first of these models.
 */
command: string
}
/**
 * The evidence for one question. Everything in claims, quotes and sources is untrusted quotation.
 */
export interface EvidenceBundle {
version: 1
notice: string
question: string
/**
 * Earlier turns as (question, answer), which the question may lean on.
 */
history: unknown[][]
/**
 * The question on its own, where the agent restated it first.
 */
restated: string
/**
 * found: there are claims (unless all were left out, see size). empty: the search ended and nothing was found, see tried. failed: the engine or every search failed, see ended and tried. A search that found nothing while one of its sources failed is one that failed.
 */
outcome: ("found" | "empty" | "failed")
claims: EvidenceClaim[]
sources: CitedSource[]
/**
 * Every search, in its order, failed ones included.
 */
tried: Attempt[]
/**
 * The agent's own answer; None where it gave none.
 */
answer: (string | null)
ended: Ending
size: Size
usage: Usage1
seconds: number
trace_id: string
protocol: string
policy: string
versions: {
[k: string]: string
}
}
/**
 * One statement that carries the answer, with where it stands.
 */
export interface EvidenceClaim {
/**
 * The agent's own sentence.
 */
text: string
/**
 * What its sources say: verbatim (in these words), close (the same names, numbers, negation and relation within two sentences), not_found (do not rely on it), contradicted (a source says something else: do not rely on it), or unchecked.
 */
check: ("unchecked" | "verbatim" | "close" | "not_found" | "contradicted")
/**
 * Taken from the agent's notes on the way, not from a list of evidence.
 */
derived: boolean
/**
 * The numbers of what it cites; empty where that was never shown.
 */
sources: number[]
/**
 * The words that support it; of an unchecked claim, the whole of what it cites.
 */
quotes: Quotation[]
}
/**
 * Words of a source, unchanged: `text` is `[start:end]` of the passage that the agent was shown.
 */
export interface Quotation {
/**
 * The number of the source in this bundle.
 */
source: number
start: number
end: number
text: string
}
/**
 * A document that a claim cites.
 */
export interface CitedSource {
/**
 * Its number in this bundle, from 1, in the order in which the claims cite it.
 */
number: number
/**
 * Where it was searched, for example web, news, arxiv, corpus or kg.
 */
source: string
id: string
title: string
/**
 * "" where it has none.
 */
url: string
/**
 * ISO date; "" where the source gives none.
 */
date: string
}
/**
 * One search that was made on the way.
 */
export interface Attempt {
round: number
source: string
query: string
/**
 * Passages.
 */
found: number
/**
 * Why it failed, as a sentence; "" where it did not.
 */
failure: string
/**
 * auth, quota, rate, bad_query, upstream, timeout or parse.
 */
kind: string
/**
 * Where source is several of them: the names of those that failed while others answered.
 */
lost?: string[]
}
/**
 * How the search ended.
 */
export interface Ending {
reason: ("answered" | "forced" | "bad_format" | "cancelled" | "engine" | "interrupted")
/**
 * The budget that ended, where the reason is forced.
 */
budget: (("rounds" | "searches" | "passages" | "policy_tokens" | "context" | "seconds" | "credits" | "user") | null)
detail: string
}
/**
 * What the text form of a bundle weighs, and what was left out for it.
 */
export interface Size {
chars: number
/**
 * By estimate: four bytes of UTF-8 a token.
 */
tokens: number
max_chars: number
max_tokens: (number | null)
/**
 * Claims left out from the end because the budget was full.
 */
dropped_claims: number
}
/**
 * What the rollout used. Tokens are the engine's own count, or an estimate by characters where it gives none.
 */
export interface Usage1 {
prompt_tokens: number
policy_tokens: number
answer_tokens: number
environment_tokens: number
rounds: number
searches: number
passages: number
credits: number
usd: number
}
/**
 * A run's evidence as RSTool gives it.
 */
export interface RunEvidence {
bundle: EvidenceBundle
/**
 * The same for a model to read, labelled as untrusted.
 */
text: string
}
/**
 * What another model made of it.
 */
export interface RunAnswer {
downstream: Downstream
}
/**
 * What another model made of the evidence, beside our own answer.
 */
export interface Downstream {
/**
 * no_evidence: the bundle held no claim, so no model was called. failed: the model or its server did, see why.
 */
outcome: ("answered" | "no_evidence" | "failed")
answer: (string | null)
/**
 * A sentence, where there is no answer.
 */
why: string
/**
 * The agent's own answer.
 */
ours: (string | null)
model: string
prompt_tokens: number
completion_tokens: number
}
/**
 * What went wrong, as OpenAI's clients read it; each message gives a hint.
 */
export interface ErrorBody {
error: ErrorObject
}
export interface ErrorObject {
message: string
type: string
param: (string | null)
code: string
/**
 * Of a search that failed.
 */
kind?: (string | null)
}
export interface FileObject {
id: string
object: "file"
bytes: number
created_at: number
filename: string
purpose: string
status: "processed"
/**
 * Where it was fetched, if it was.
 */
url: (string | null)
}
/**
 * A library. OpenAI calls it a vector store; here it is searched by words.
 */
export interface LibraryObject {
id: string
object: "vector_store"
created_at: number
name: string
usage_bytes: number
file_counts: FileCounts
status: ("completed" | "in_progress")
expires_after: null
expires_at: null
last_active_at: number
metadata: {
[k: string]: string
}
indexing: (Indexing | null)
/**
 * Why it cannot be indexed now; it is tried again.
 */
trouble: (string | null)
}
export interface FileCounts {
in_progress: number
completed: number
failed: number
cancelled: number
total: number
}
/**
 * How far the indexing is, where this server is at it.
 */
export interface Indexing {
part: number
parts: number
stage: string
done: number
total: number
}
export interface LibraryList {
object: "list"
data: LibraryObject[]
first_id: (string | null)
last_id: (string | null)
has_more: boolean
}
/**
 * A file in a library.
 */
export interface LibraryFileObject {
id: string
object: "vector_store.file"
created_at: number
filename: string
usage_bytes: number
vector_store_id: string
status: ("in_progress" | "completed" | "failed" | "cancelled")
last_error: (FileError | null)
attributes: {
[k: string]: string | number | boolean
}
passages: number
/**
 * What of it could not be read, where the rest could.
 */
note: (string | null)
url: (string | null)
}
export interface FileError {
code: "invalid_file"
message: string
}
export interface LibraryFileList {
object: "list"
data: LibraryFileObject[]
first_id: (string | null)
last_id: (string | null)
has_more: boolean
}
/**
 * A document as it was indexed.
 */
export interface DocumentText {
file: FileObject
passages: DocumentPassage[]
total: number
}
/**
 * A piece of a document, as searches find it.
 */
export interface DocumentPassage {
id: string
title: string
text: string
start: number
end: number
/**
 * The page or slide that it begins on, from 1; 0 where there are none.
 */
page: number
/**
 * Where in `text` each further page or slide begins, in characters.
 */
page_breaks: number[]
}
export interface SettingsPage {
fields: SettingField[]
/**
 * Where changes are written.
 */
file: string
/**
 * Something was saved that holds after a restart.
 */
pending: boolean
can_restart: boolean
}
export interface SettingField {
name: string
label: string
group: string
kind: ("text" | "secret" | "choice" | "switch")
/**
 * Null where it is not set, and for a secret.
 */
value: (string | boolean | null)
is_set: boolean
/**
 * A flag, the environment or a cairn.toml says it, so it cannot be changed here.
 */
fixed: boolean
choices: string[]
hint: string
}
export interface CheckedSettings {
checks: CheckedSetting[]
}
export interface CheckedSetting {
/**
 * Of the check.
 */
name: string
/**
 * The settings that it looks at.
 */
fields: string[]
state: ("ok" | "warn" | "bad" | "skip")
says: string
fix: string
}
/**
 * A report without its text.
 */
export interface ReportCard {
id: string
question: string
/**
 * running, or how it ended; see the report's own.
 */
state: ("running" | "done" | "cut" | "failed" | "cancelled" | "interrupted")
created: string
ended: (string | null)
figures: ReportFigures
}
/**
 * What is counted of a report.
 */
export interface ReportFigures {
title: string
/**
 * That have something to say.
 */
sections: number
sentences: number
sources: number
used: ReportUsage
}
/**
 * What was used until now.
 */
export interface ReportUsage {
seconds: number
searches: number
passages: number
tokens: number
credits: number
usd: number
}
/**
 * Reports, the latest first.
 */
export interface ReportPage {
reports: ReportCard[]
/**
 * What `before` must say for the next page; null on the last one.
 */
next: (string | null)
}
/**
 * A report with its text; of one that still runs, as far as it goes.
 */
export interface ReportDetail {
id: string
question: string
/**
 * running, or how it ended; see the report's own.
 */
state: ("running" | "done" | "cut" | "failed" | "cancelled" | "interrupted")
created: string
ended: (string | null)
figures: ReportFigures
report: Report
}
export interface Report {
version: 1
id: string
title: string
question: string
/**
 * done; cut: a budget ended or the user wanted it now, and sections are left out; failed: no section could be researched; cancelled; interrupted: the server that ran it ended.
 */
state: ("running" | "done" | "cut" | "failed" | "cancelled" | "interrupted")
created: string
outline_by: ("user" | "model" | "sources")
note: string
sections: Section[]
sources: ReportSource[]
contradictions: Contradiction[]
unverified: Unverified[]
budget: ReportBudget
used: ReportUsage1
policy: string
protocol: string
/**
 * Version of Cairn.
 */
cairn: string
}
export interface Section {
heading: string
question: string
state: ("waiting" | "running" | "researched" | "left_out" | "failed" | "cancelled")
/**
 * Where it was not researched to its end, why.
 */
why: string
sentences: ReportSentence[]
/**
 * Id of its run, whose trace shows each search.
 */
run: string
}
/**
 * One sentence of a section. The checker calls it supported by the sources that it cites.
 */
export interface ReportSentence {
text: string
/**
 * claim: the model's own words; quote: the source's.
 */
kind: ("claim" | "quote")
sources: number[]
check: ("unchecked" | "verbatim" | "close" | "not_found" | "contradicted")
/**
 * The words that support it.
 */
quotes: SourceQuote[]
}
/**
 * Words of a source, unchanged: `text` is `[start:end]` of the passage with this id.
 */
export interface SourceQuote {
source: number
passage: string
start: number
end: number
text: string
}
/**
 * A document that the report cites.
 */
export interface ReportSource {
/**
 * From 1, in the order in which the report cites them.
 */
number: number
/**
 * Where it was found, for example web, news, arxiv, corpus or kg.
 */
source: string
title: string
/**
 * "" where it has none.
 */
url: string
/**
 * ISO date; "" where the source gives none.
 */
date: string
passages: SourcePassage[]
}
/**
 * Text of a source that a sentence rests on, as the search gave it.
 */
export interface SourcePassage {
id: string
title: string
text: string
}
/**
 * Two statements that cannot both be true.
 */
export interface Contradiction {
section: string
says: string
/**
 * Empty: only the model says it.
 */
says_sources: number[]
against: string
against_sources: number[]
}
/**
 * What a run claimed and no source that it cites says.
 */
export interface Unverified {
section: string
text: string
}
/**
 * What a whole report may use, over its outline and all of its sections.
 */
export interface ReportBudget {
seconds: number
searches: number
/**
 * Passages that the policy is shown.
 */
passages: number
/**
 * Tokens that the model writes.
 */
tokens: number
/**
 * What paid searches may cost.
 */
credits: number
}
/**
 * What was used until now.
 */
export interface ReportUsage1 {
seconds: number
searches: number
passages: number
tokens: number
credits: number
usd: number
}
/**
 * A question, as chat completions take it; `stream` and `stream_options` mean nothing here.
 */
export interface RunRequest {
/**
 * One of those that `/v1/models` lists.
 */
model?: string
temperature?: (number | null)
top_p?: (number | null)
seed?: (number | null)
/**
 * The answer alone, with the claim behind it, or with all claims.
 */
answer_style?: (("short" | "sentence" | "with_evidence") | null)
/**
 * For which client the answer is made; left out, what the server's settings say.
 */
profile?: (("default" | "openwebui" | "markdown-links" | "perplexity") | null)
/**
 * Names of the sources that may be searched; left out: each.
 */
sources?: (string[] | null)
/**
 * Ids of libraries to search, or `all` for each of yours; `sources` only if named too.
 */
libraries?: (string[] | null)
/**
 * Ids of files: only these are searched, of the libraries or else of all of yours.
 */
files?: (string[] | null)
budgets?: (BudgetOptions | null)
/**
 * Domains to search, or with a leading `-` to leave out.
 */
search_domain_filter?: (string[] | null)
/**
 * `hour` is taken as `day`.
 */
search_recency_filter?: (("hour" | "day" | "week" | "month" | "year") | null)
search_after_date_filter?: (string | null)
search_before_date_filter?: (string | null)
/**
 * `academic` searches the sources of papers that there are, or else wants science.
 */
search_mode?: (("web" | "academic" | "sec") | null)
/**
 * Answer without searching; the answer says so.
 */
disable_search?: (boolean | null)
/**
 * @maxItems 5000
 */
messages: Message[]
stream?: (boolean | null)
stream_options?: (StreamOptions | null)
/**
 * One, if it is said: a question gets one answer.
 */
n?: (number | null)
max_tokens?: (number | null)
max_completion_tokens?: (number | null)
reasoning_effort?: (("none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max") | null)
/**
 * An id that the turns of one conversation share.
 */
conversation?: string
/**
 * Id of the run that the question follows up: its searches are used again.
 */
follows?: string
/**
 * What the policy is given of that run: its answer, its claims too, or what it was shown, too.
 */
context?: ("summary" | "evidence" | "all")
}
/**
 * What one answer may use. A request can lower what the server allows, and never raise it.
 */
export interface BudgetOptions {
/**
 * Rounds of searches.
 */
rounds?: (number | null)
searches?: (number | null)
/**
 * Passages that the policy is shown.
 */
passages?: (number | null)
/**
 * Tokens that the policy writes, its answer included.
 */
tokens?: (number | null)
/**
 * Until the answer is forced, which may then take as long again.
 */
seconds?: (number | null)
/**
 * What paid searches may cost.
 */
credits?: (number | null)
}
export interface Message {
role: ("system" | "developer" | "user" | "assistant" | "tool" | "function")
content?: (string | (TextPart | OtherPart)[] | null)
}
export interface TextPart {
type: ("text" | "input_text" | "output_text")
text: string
}
/**
 * A picture, a sound, a file, a refusal: nothing that a question can be read from.
 */
export interface OtherPart {
type: string
}
export interface StreamOptions {
include_usage?: (boolean | null)
}
/**
 * A report. The other options are those of chat completions; `budgets` is then that of one section's run.
 */
export interface ReportRequest {
/**
 * One of those that `/v1/models` lists.
 */
model?: string
temperature?: (number | null)
top_p?: (number | null)
seed?: (number | null)
/**
 * The answer alone, with the claim behind it, or with all claims.
 */
answer_style?: (("short" | "sentence" | "with_evidence") | null)
/**
 * For which client the answer is made; left out, what the server's settings say.
 */
profile?: (("default" | "openwebui" | "markdown-links" | "perplexity") | null)
/**
 * Names of the sources that may be searched; left out: each.
 */
sources?: (string[] | null)
/**
 * Ids of libraries to search, or `all` for each of yours; `sources` only if named too.
 */
libraries?: (string[] | null)
/**
 * Ids of files: only these are searched, of the libraries or else of all of yours.
 */
files?: (string[] | null)
budgets?: (BudgetOptions | null)
/**
 * Domains to search, or with a leading `-` to leave out.
 */
search_domain_filter?: (string[] | null)
/**
 * `hour` is taken as `day`.
 */
search_recency_filter?: (("hour" | "day" | "week" | "month" | "year") | null)
search_after_date_filter?: (string | null)
search_before_date_filter?: (string | null)
/**
 * `academic` searches the sources of papers that there are, or else wants science.
 */
search_mode?: (("web" | "academic" | "sec") | null)
/**
 * Answer without searching; the answer says so.
 */
disable_search?: (boolean | null)
/**
 * What the report is about.
 */
question: string
/**
 * Headings or questions of your own; left out, the outline is made.
 */
sections?: (string[] | null)
/**
 * The most sections of an outline that is made.
 */
most_sections?: number
budget?: (ReportBudgetOptions | null)
/**
 * `low` halves what the report and each of its runs may use, `high` doubles it.
 */
reasoning_effort?: (("none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max") | null)
}
/**
 * What a whole report may use. A request can lower what the server allows, and never raise it.
 */
export interface ReportBudgetOptions {
/**
 * Left out: 300.
 */
seconds?: (number | null)
searches?: (number | null)
/**
 * Passages that the policy is shown.
 */
passages?: (number | null)
/**
 * Tokens that the policy writes.
 */
tokens?: (number | null)
/**
 * What paid searches may cost.
 */
credits?: (number | null)
}
/**
 * Which other model is to answer from a run's evidence.
 */
export interface AnswerWithRequest {
model: string
}
/**
 * New values by name; null takes one back to its default.
 */
export interface SettingsChange {
values: {
[k: string]: string | boolean | null
}
}
