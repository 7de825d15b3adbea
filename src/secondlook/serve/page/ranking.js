// The order of both looks, as the sliders have it. Nothing here touches the page.

/** Hits in the first look's order. */
export function firstLook(hits) {
  return [...hits].sort((a, b) => a.first_rank - b.first_rank);
}

/**
 * Hits in the second look's order: the first `depth` of the first look are ranked, the others follow
 * as they are. `weight` is the first look's share, over scores stretched from 0 to 1; at 0 the order
 * is the server's. Hits without a score, where the deadline came first, stand behind those with one.
 */
export function secondLook(hits, depth, weight) {
  const first = firstLook(hits);
  const read = first.slice(0, depth);
  const scored = read.filter((hit) => hit.raw_score !== null);
  const one = stretched(scored.map((hit) => hit.first_score));
  const two = stretched(scored.map((hit) => hit.raw_score));
  const fused = new Map(
    scored.map((hit, at) => [hit, weight * one[at] + (1 - weight) * two[at]]),
  );
  scored.sort(
    weight === 0
      ? (a, b) => a.rank - b.rank
      : (a, b) => fused.get(b) - fused.get(a) || a.first_rank - b.first_rank,
  );
  const unscored = read.filter((hit) => hit.raw_score === null);
  return [...scored, ...unscored, ...first.slice(depth)];
}

function stretched(scores) {
  const least = Math.min(...scores);
  const range = Math.max(...scores) - least;
  return scores.map((score) => (range > 0 ? (score - least) / range : 0));
}
