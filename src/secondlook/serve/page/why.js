// The explanation of one hit.

import { draw, make, marked, short } from "./text.js";

const COLUMNS = 24; // document words of an attention map
const ROWS = 12; // of the table of words
const CELL = 16;
const LETTER = 6.7;

/** All of an explanation, as elements. `hit` is what the search said of it, `score` what it showed. */
export function explanation(said, hit, score) {
  const largest = Math.max(
    1e-9,
    ...[...said.query_words, ...said.document_words].map((word) => Math.abs(word.attribution)),
  );
  return [
    summary(said, hit, score),
    make("h3", "", "Query"),
    words(said.query, said.query_words, largest),
    make("h3", "", "Document"),
    documentText(said, largest),
    make("p", "note", "Blue words raise the score, orange ones lower it. ",
      "Underlined: in both texts. Dotted: outside the vocabulary."),
    ...(said.windows.length > 1 ? windows(said) : []),
    make("h3", "", "What each word adds"),
    attributions(said, largest),
    make("h3", "", "Attention"),
    ...attention(said),
  ];
}

function summary(said, hit, score) {
  const parts = Object.entries(said.parts).map(
    ([name, value]) => `${value < 0 ? "" : "+"}${short(value)} ${name}`,
  );
  const raw = `raw ${short(said.score)}${parts.length ? ` = ${parts.join(" ")}` : ""}`;
  return make("p", "summary",
    make("b", "", short(score ?? said.score)),
    ` second look (${raw}) · first look ${short(hit.first_score)}, at rank ${hit.first_rank}`,
    said.cut ? ` · ${said.cut} tokens were not read` : "");
}

function words(text, some, largest) {
  return make("p", "words", ...marked(Array.from(text), some, dressed(largest)));
}

function dressed(largest) {
  return (word, text) => {
    const names = ["w", word.attribution < 0 ? "lowers" : "raises"];
    if (word.matched) names.push("matched");
    if (word.outside) names.push("outside");
    const element = make("span", names.join(" "), text);
    element.style.setProperty("--share", Math.abs(word.attribution) / largest);
    element.title =
      short(word.attribution) + (word.outside ? ` · read as ${word.pieces.join(" ")}` : "");
    return element;
  };
}

/** The part that was read, between what stands before and behind it. */
function documentText(said, largest) {
  const letters = Array.from(said.document);
  const part = said.windows[said.window];
  const many = said.windows.length > 1;
  const start = many ? part.start : 0;
  const read = said.document_words.at(-1)?.end ?? start;
  const end = said.cut || many ? Math.max(read, start) : letters.length;
  const rest = letters.slice(end, end + 400).join("");
  return make("p", "words",
    start > 0 ? make("span", "unread", `… ${letters.slice(Math.max(0, start - 200), start).join("")}`) : "",
    ...marked(letters, said.document_words, dressed(largest), start, end),
    rest ? make("span", "unread", rest + (end + 400 < letters.length ? " …" : "")) : "");
}

/** Bars grow from the lowest score, which is no zero. */
function windows(said) {
  const scores = said.windows.map((one) => one.score);
  const least = Math.min(...scores);
  const range = Math.max(...scores) - least || 1;
  const list = make("ol", "bars");
  said.windows.forEach((one, at) => {
    const bar = make("span", "bar");
    bar.style.setProperty("--share", 0.05 + (0.95 * (one.score - least)) / range);
    const item = make("li", at === said.window ? "chosen" : "",
      make("span", "name", `${one.start}–${one.end}`), bar, make("span", "n", short(one.score)));
    list.append(item);
  });
  return [make("h3", "", "Windows"),
    make("p", "note", "The parts a long document is scored by; the words above are of the bold one."),
    list];
}

function attributions(said, largest) {
  const all = [
    ...said.query_words.map((word) => ({ side: "query", word })),
    ...said.document_words.map((word) => ({ side: "document", word })),
  ]
    .filter(({ word }) => word.attribution)
    .sort((a, b) => Math.abs(b.word.attribution) - Math.abs(a.word.attribution))
    .slice(0, ROWS);
  if (!all.length) return make("p", "note", "No word makes a difference.");
  const head = make("tr", "", ...["word", "of", "read as", "score lost without it"].map((name) => {
    const cell = make("th", "", name);
    cell.scope = "col";
    return cell;
  }));
  const rows = all.map(({ side, word }) => {
    const bar = make("span", `bar ${word.attribution < 0 ? "lowers" : "raises"}`);
    bar.style.setProperty("--share", Math.abs(word.attribution) / largest);
    const pieces = word.outside ? word.pieces.join(" ") : "";
    return make("tr", "", make("td", "", word.text), make("td", "", side), make("td", "", pieces),
      make("td", "n", bar, short(word.attribution)));
  });
  return make("table", "", make("thead", "", head), make("tbody", "", ...rows));
}

function attention(said) {
  const told = said.attention_note ? [make("p", "note", `${said.attention_note}.`)] : [];
  if (!said.attention.length) {
    return told.length ? told : [make("p", "note",
      "Not shown: an exported ranker gives none out. Serve one with torch to see it.")];
  }
  const columns = mostSeen(said);
  const top = Math.max(1e-9, ...said.attention.flatMap((map) => map.query_to_document.flat()));
  return [
    ...told,
    make("p", "note", `How much each query word (rows) looks at each document word (columns), `
      + `mean of all layers and heads. The strongest cell is ${short(top)} of a word’s attention.`),
    ...said.attention.map((map) => figure(said, map, columns, top)),
  ];
}

/** The document words that are looked at most in any map, in their order; no punctuation. */
function mostSeen(said) {
  const rows = said.attention.flatMap((map) => map.query_to_document);
  const weights = said.document_words.map((word, at) =>
    /[\p{L}\p{N}]/u.test(word.text) ? Math.max(0, ...rows.map((row) => row[at])) : 0);
  return weights
    .map((weight, at) => ({ weight, at }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, COLUMNS)
    .map(({ at }) => at)
    .sort((a, b) => a - b);
}

function figure(said, map, columns, top) {
  const longest = (some) => Math.max(1, ...some.map((word) => Array.from(word.text).length));
  const shown = columns.map((at) => said.document_words[at]);
  const left = 10 + LETTER * longest(said.query_words);
  const above = 10 + LETTER * longest(shown);
  const width = left + CELL * columns.length + 2;
  const height = above + CELL * said.query_words.length + 2;
  const drawn = draw("svg", { role: "img", width, height, viewBox: `0 0 ${width} ${height}` });
  said.query_words.forEach((word, row) => {
    const y = above + CELL * (row + 0.75);
    drawn.append(draw("text", { x: left - 5, y, "text-anchor": "end" }, word.text));
  });
  let strongest = { share: -1, from: "", to: "" };
  columns.forEach((at, place) => {
    const x = left + CELL * (place + 0.7);
    const word = said.document_words[at].text;
    drawn.append(draw("text", { transform: `translate(${x},${above - 5}) rotate(-90)` }, word));
    map.query_to_document.forEach((row, number) => {
      const share = row[at];
      const from = said.query_words[number].text;
      if (share > strongest.share) strongest = { share, from, to: word };
      const cell = { x: left + CELL * place, y: above + CELL * number, width: CELL, height: CELL };
      drawn.append(draw("rect", { ...cell, "fill-opacity": (share / top) ** 0.6 },
        draw("title", {}, `${from} → ${word}: ${short(share)}`)));
    });
  });
  const how = `${map.strm ? "With" : "Without"} STRM, ${
    map.as_trained ? "as it scores" : "for comparison"}`;
  drawn.setAttribute("aria-label", `${how}: strongest from ${strongest.from} to ${strongest.to}`);
  const scroll = make("div", "scroll", drawn);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", `Attention map: ${how}`);
  return make("figure", "", scroll, make("figcaption", "", `${how}; it scores ${short(map.score)}.`));
}
