"""The built-in systems, one file each. They are registered through `adapters.plugin`."""
