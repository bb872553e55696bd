"""The configs of this package; Hydra finds them through `config_search_path` in plugin.py."""
