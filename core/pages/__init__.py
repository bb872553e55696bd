"""Fetching a page, reading it, finding an excerpt in it. What a page says is data, and hostile."""
