// The two columns, and the lines between them.

import { draw, excerpt, highlight, make, marked, short } from "./text.js";

const EXCERPT = 240; // characters of a text on a card
const template = document.getElementById("hit");
const moves = document.getElementById("moves");
const columns = {
  first: document.querySelector("#first ol"),
  second: document.querySelector("#second ol"),
};

/**
 * Show the first `count` of both orders; what fell is marked in both, as the second column may not
 * show it any more. `score` is the second look's of a hit, as it is shown;
 * `open` is called with the hit whose button is pressed.
 */
export function show(first, second, count, score, open) {
  const places = new Map(second.map((hit, at) => [hit.id, at + 1]));
  const fallen = (hit) => {
    const move = moved(hit, places.get(hit.id));
    return move.kind === "down" ? move : null;
  };
  columns.first.replaceChildren(
    ...first.slice(0, count).map((hit) => card(hit, hit.first_rank, fallen(hit), score(hit), open)),
  );
  columns.second.replaceChildren(
    ...second
      .slice(0, count)
      .map((hit, at) => card(hit, at + 1, moved(hit, at + 1), score(hit), open)),
  );
  drawMoves();
}

function card(hit, rank, move, score, open) {
  const item = template.content.firstElementChild.cloneNode(true);
  item.dataset.id = hit.id;
  item.querySelector(".rank").textContent = rank;
  const button = item.querySelector("button");
  button.textContent = hit.title || hit.id;
  button.title = "Why this score?";
  button.addEventListener("click", () => open(hit));
  const badge = item.querySelector(".move");
  if (move) {
    badge.classList.add(move.kind);
    badge.textContent = move.sign;
    badge.append(make("span", "hidden", move.told));
    item.classList.add(move.kind);
  } else badge.remove();
  const letters = Array.from(hit.passage ? hit.passage.text : hit.text);
  const marks = hit.marks ?? [];
  const start = excerpt(letters, marks, EXCERPT);
  const end = Math.min(letters.length, start + EXCERPT);
  item.querySelector(".text").append(
    start > 0 ? "… " : "",
    ...marked(letters, marks, highlight, start, end),
    end < letters.length ? " …" : "",
  );
  item.querySelector(".figures").textContent = [
    `first ${short(hit.first_score)}`,
    score === null ? "no score in time" : `second ${short(score)}`,
    hit.passage ? "best passage of a long document" : "",
    hit.cut_tokens ? `${hit.cut_tokens} tokens not read` : "",
  ]
    .filter(Boolean)
    .join(" · ");
  return item;
}

function moved(hit, place) {
  const steps = hit.first_rank - place;
  if (steps > 0) return { kind: "up", sign: `▲ ${steps}`, told: " places up" };
  if (steps < 0) return { kind: "down", sign: `▼ ${-steps}`, told: " places down" };
  return { kind: "same", sign: "=", told: " same place" };
}

/** A line for each hit that is in both columns; a broken one where its other end is further down. */
function drawMoves() {
  const frame = moves.getBoundingClientRect();
  if (!frame.width) return moves.replaceChildren();
  const middle = (item) => {
    const box = item.querySelector("h3").getBoundingClientRect();
    return box.top + box.height / 2 - frame.top;
  };
  const left = new Map([...columns.first.children].map((item) => [item.dataset.id, middle(item)]));
  const lines = [];
  for (const item of columns.second.children) {
    const { id } = item.dataset;
    const kind = ["up", "down"].find((name) => item.classList.contains(name)) ?? "same";
    lines.push(line(id, kind, left.get(id), middle(item), frame));
    left.delete(id);
  }
  for (const [id, from] of left) lines.push(line(id, "down", from, undefined, frame));
  moves.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  moves.replaceChildren(...lines);
  return undefined;
}

function line(id, kind, from, to, { width, height }) {
  const whole = from !== undefined && to !== undefined;
  const [y1, y2] = [from ?? height + 20, to ?? height + 20];
  const half = width / 2;
  const drawn = draw("g", { class: whole ? kind : `${kind} beyond`, "data-id": id });
  drawn.append(draw("path", { d: `M4,${y1} C${half},${y1} ${half},${y2} ${width - 4},${y2}` }));
  if (whole || to !== undefined) drawn.append(draw("circle", { cx: width - 4, cy: y2, r: 3.5 }));
  return drawn;
}

/** Point out a hit wherever it stands; without an id, none. */
export function pointOut(id) {
  for (const one of document.querySelectorAll("#looks [data-id]")) {
    one.classList.toggle("pointed", one.dataset.id === id);
  }
}

/** The button one step from this one; left and right lead to the same document if it is shown. */
export function neighbour(button, key) {
  const item = button.closest("li");
  const list = item.parentElement;
  let next = null;
  if (key === "ArrowDown") next = item.nextElementSibling;
  else if (key === "ArrowUp") next = item.previousElementSibling;
  else {
    const other = key === "ArrowLeft" ? columns.first : columns.second;
    if (other === list || !other.offsetParent) return null;
    const same = [...other.children].find((one) => one.dataset.id === item.dataset.id);
    next = same ?? other.children[[...list.children].indexOf(item)];
  }
  return next?.querySelector("button") ?? null;
}

/** The best hit of the second look, or of the first where only that is shown. */
export function topButton() {
  const lists = [columns.second, columns.first];
  return lists.find((list) => list.offsetParent)?.querySelector("button") ?? null;
}

new ResizeObserver(drawMoves).observe(document.getElementById("looks"));
