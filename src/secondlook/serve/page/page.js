// The search page: what is asked, what is shown, and the keys.

import { neighbour, pointOut, show, topButton } from "./looks.js";
import { firstLook, secondLook } from "./ranking.js";
import { highlight, make, marked } from "./text.js";
import { explanation } from "./why.js";

const SHOWN = 10; // hits of a column, and how many more each time
const KEY = "secondlook-key"; // in this tab's storage only
const $ = (id) => document.getElementById(id);

let answer = null; // the last search
let asked = { query: "", depth: 0, model: undefined };
let count = SHOWN;
let waiting = new AbortController(); // the search under way
let opening = new AbortController(); // the explanation under way
let afterKey = start;

class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The server's JSON; a Problem with its own words where it refuses. */
async function ask(path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  if (body) headers["content-type"] = "application/json";
  let reply;
  try {
    const method = body ? "POST" : "GET";
    reply = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The server cannot be reached. Is it still running?");
  }
  const said = await reply.json().catch(() => ({}));
  if (reply.ok) return said;
  const wait = reply.headers.get("retry-after");
  const again = wait ? ` Try again in ${wait} s.` : "";
  throw new Problem(reply.status, `${said.message ?? `The server said ${reply.status}`}.${again}`);
}

function tell(message, kind = "") {
  $("status").className = kind;
  $("status").replaceChildren(...[message].flat());
}

/** What went wrong, in words; a key is asked for where that would help. */
function fail(error, again) {
  if (error.name === "AbortError") return;
  if (error.status === 401) {
    const refused = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    tell(refused ? "That key is not known here." : "");
    $("enter").hidden = false;
    $("key").focus();
    afterKey = again;
  } else if (error instanceof Problem) tell(error.message, "error");
  else {
    tell("This page failed; the browser’s console says how.", "error");
    throw error;
  }
}

async function start() {
  try {
    const info = await ask("info");
    $("depth").max = Math.min(200, info.max_client_batch_size);
    $("ranker").replaceChildren(...info.rankers.map(({ name }) => new Option(name, name)));
    $("rankers").hidden = info.rankers.length < 2;
    if (info.engine === null) {
      for (const control of document.querySelectorAll("#ask input, #ask button, #controls input")) {
        control.disabled = true;
      }
      tell(["This server has no index, so there is nothing to search. Start it with ",
        make("code", "", "secondlook serve RANKER --index INDEX"), "; it reranks without one."]);
      return;
    }
    $("first-told").textContent = info.engine;
    $("options").hidden = info.search_parameters === null;
    $("parameters").replaceChildren(...(info.search_parameters ?? []).map(parameter));
    tell("Every hit shows where the first look had it, and where the second has it. "
      + "Click one to see why it scored so.");
    const linked = new URLSearchParams(location.hash.slice(1));
    if (linked.get("q")) {
      $("query").value = linked.get("q");
      $("filters").value = linked.get("filters") ?? "";
      await search();
    }
  } catch (error) {
    fail(error, start);
  }
}

/** The field of a query template's parameter. */
function parameter(name) {
  const input = make("input");
  Object.assign(input, { name, type: "search", autocomplete: "off" });
  input.setAttribute("form", "ask");
  const label = make("label", "", `${name} `);
  label.append(input);
  return label;
}

/** Filters and parameters, as the server takes them. */
function options() {
  const asked = {};
  const filters = $("filters").value.trim();
  try {
    if (filters) asked.filters = [JSON.parse(filters)].flat();
  } catch {
    throw new Problem(0, 'A filter is JSON, such as {"term": {"brand": "acme"}}');
  }
  for (const { name, value } of document.querySelectorAll("#parameters input")) {
    if (value.trim()) asked.parameters = { ...asked.parameters, [name]: typed(value.trim()) };
  }
  return asked;
}

/** A number, a list or a truth value where it is one, else the text. */
function typed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function search() {
  const query = $("query").value.trim();
  if (!query) return;
  waiting.abort();
  waiting = new AbortController();
  const { signal } = waiting;
  const depth = Number($("depth").value);
  const model = $("rankers").hidden ? undefined : $("ranker").value;
  tell("Looking twice …", "busy");
  const linked = { q: query };
  if ($("filters").value.trim()) linked.filters = $("filters").value.trim();
  history.replaceState(null, "", `#${new URLSearchParams(linked)}`);
  try {
    const body = { query, depth, model, k: depth, marks: true, ...options() };
    const found = await ask("v1/search", body, signal);
    [answer, asked, count] = [found, { query, depth, model }, SHOWN];
    render();
  } catch (error) {
    if (error.name !== "AbortError") clear();
    fail(error, search);
  }
}

function clear() {
  answer = null;
  for (const id of ["looks", "more", "legend", "asked", "switch"]) $(id).hidden = true;
}

function render() {
  const { hits, partial } = answer;
  if (!hits.length) {
    clear();
    tell("The first look found nothing: no document holds any of these words.");
    return;
  }
  const depth = Number($("depth").value);
  const weight = Number($("fusion").value);
  const second = secondLook(hits, depth, weight);
  for (const id of ["looks", "legend", "asked", "switch"]) $(id).hidden = false;
  $("more").hidden = count >= hits.length;
  const letters = Array.from(asked.query);
  $("asked").replaceChildren(...marked(letters, answer.query_marks ?? [], highlight));
  $("first-told").textContent = took(answer.first_look_ms);
  $("second-told").textContent = `${answer.model}, ${took(answer.second_look_ms)}`;
  $("second-told").title = answer.score_meaning;
  show(firstLook(hits), second, count, score, open);
  const late = hits.filter((hit) => hit.raw_score === null).length;
  const read = Math.min(depth, hits.length);
  const told = `${read} ${read === 1 ? "candidate" : "candidates"} re-ranked: ${climbed(second)} `
    + "Click a hit to see why.";
  $("scores").textContent = meaning();
  if (partial) {
    tell(`${late} of ${hits.length} candidates were not scored in time: they stand last, in the `
      + "first look’s order. A smaller depth helps.", "partial");
  } else tell(told);
}

function took(ms) {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1000)} s`;
}

/** The relevance score of a hit, from 0 to 1; the answer's `score_meaning` says what it means. */
function score(hit) {
  return hit.score;
}

/** What the two numbers of a hit are. */
function meaning() {
  return "“first” is the search engine’s score (BM25: matched words, rare ones count more), “second” the "
    + `ranker’s. ${answer.score_meaning}`;
}

function climbed(second) {
  const top = second.slice(0, SHOWN);
  const risen = top.filter((hit) => hit.first_rank > SHOWN).length;
  if (second.every((hit, at) => hit.first_rank === at + 1)) return "both looks agree.";
  const best = second[0].first_rank;
  const first = best === 1 ? "the best stays the best" : `the best was at rank ${best} before`;
  return `${first}; ${risen} of the top ${top.length} came from further down.`;
}

async function open(hit) {
  opening.abort();
  opening = new AbortController();
  const { signal } = opening;
  $("why-name").textContent = hit.title || hit.id;
  const text = make("p", "words", hit.passage ? hit.passage.text : hit.text);
  const around = (note) => [note, make("h3", "", "Document"), text];
  $("why-body").replaceChildren(
    ...around(make("p", "busy", "Scoring it again without each word …")),
  );
  if (!$("why").open) $("why").showModal();
  pointOut(hit.id);
  try {
    const { query, model } = asked;
    const { title, text } = hit;
    const said = await ask("v1/explain", { query, model, title, text }, signal);
    $("why-body").replaceChildren(...explanation(said.explanation, hit, score(hit)));
  } catch (error) {
    if (error.name === "AbortError") return;
    const message = error instanceof Problem ? error.message : "This page failed to show it.";
    $("why-body").replaceChildren(...around(make("p", "error", message)));
    if (!(error instanceof Problem)) throw error;
  }
}

/** Moving a slider reorders what is here; only a greater depth needs the server again. */
function slide() {
  $("depth-now").value = $("depth").value;
  $("fusion-now").value = Number($("fusion").value).toFixed(2).replace(/\.?0+$/, "");
  if (answer) render();
}

function keys(event) {
  if ($("why").open || event.ctrlKey || event.metaKey || event.altKey) return;
  const { target, key } = event;
  const typing = target.matches("input[type=search], input[type=password], select");
  const onHit = target.matches("#looks button");
  let next = null;
  if (key === "/" && !typing) next = $("query");
  else if (key === "Escape" && onHit) next = $("query");
  else if (key === "ArrowDown" && target === $("query")) next = topButton();
  else if (key.startsWith("Arrow") && onHit) {
    next = neighbour(target, key);
    if (key === "ArrowUp" && !next) next = $("query");
  }
  if (!next) return;
  event.preventDefault();
  next.focus();
  if (next === $("query")) next.select();
  else next.scrollIntoView({ block: "nearest" });
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
$("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value.trim());
  $("enter").hidden = true;
  $("key").value = "";
  afterKey();
});
for (const id of ["depth", "fusion"]) $(id).addEventListener("input", slide);
$("depth").addEventListener("change", () => {
  if (answer && Number($("depth").value) > asked.depth && answer.found >= asked.depth) search();
});
$("ranker").addEventListener("change", search);
$("more").addEventListener("click", () => {
  count += SHOWN;
  render();
});
for (const radio of document.querySelectorAll("[name=look]")) {
  radio.addEventListener("change", () => {
    $("looks").dataset.look = radio.value;
  });
}
for (const [enter, leave] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
  $("looks").addEventListener(enter, ({ target }) => pointOut(target.closest("[data-id]")?.dataset.id));
  $("looks").addEventListener(leave, () => pointOut());
}
$("close").addEventListener("click", () => $("why").close());
$("why").addEventListener("close", () => opening.abort());
$("why").addEventListener("click", (event) => {
  if (event.target === $("why")) $("why").close(); // the dimmed page beside it
});
document.addEventListener("keydown", keys);
start();
