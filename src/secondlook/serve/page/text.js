// Texts with marked words. All text reaches the page as text, never as markup.

/** An element with a class and children; strings become text. */
export function make(tag, name = "", ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children);
  return element;
}

/** An SVG element with attributes. */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A score short enough for a card. */
export function short(score) {
  const size = Math.abs(score);
  const tiny = size !== 0 && size < 0.001;
  return (tiny ? score.toExponential(1) : score.toFixed(size < 10 ? 3 : 1)).replaceAll("-", "−");
}

/**
 * The text from `start` to `end`, its marked words as elements that `dress` makes of them. The server
 * counts characters as Unicode does and JavaScript does not: `letters` is the text as a list of them.
 */
export function marked(letters, marks, dress, start = 0, end = letters.length) {
  const parts = [];
  let at = start;
  for (const mark of marks) {
    if (mark.start < at || mark.end > end) continue;
    parts.push(letters.slice(at, mark.start).join(""));
    parts.push(dress(mark, letters.slice(mark.start, mark.end).join("")));
    at = mark.end;
  }
  parts.push(letters.slice(at, end).join(""));
  return parts;
}

/** A word that both texts hold, or that the vocabulary lacks. */
export function highlight(mark, word) {
  const names = [];
  if (mark.matched === "stem") names.push("stem");
  if (!mark.matched) names.push("plain");
  if (mark.outside) names.push("outside");
  return make("mark", names.join(" "), word);
}

/** Where the part of the text begins that holds the most matched words. */
export function excerpt(letters, marks, length) {
  const places = marks.filter((mark) => mark.matched).map((mark) => mark.start);
  let best = 0;
  let most = places.filter((place) => place < length).length;
  for (const place of places) {
    const from = Math.max(0, place - 40);
    const held = places.filter((other) => other >= from && other < from + length).length;
    if (held > most) [best, most] = [from, held];
  }
  while (best > 0 && best < letters.length && !/\s/.test(letters[best - 1])) best += 1;
  return best;
}
