"""From judgments to a better ranker: mining, and the phases of a recipe."""
