"""A plugin that fails at import."""
