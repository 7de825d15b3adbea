"""Re-rankers that somebody else runs, asked over HTTP."""
