"""The shipped configuration: config.yaml and one folder a group."""
