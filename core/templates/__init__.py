"""What `core.new` writes: files whose @NAME@, @PACKAGE@ and @DISTRIBUTION@ are filled in (core/new.py)."""
