"""Programs that show a defect which more than one plugin has; see the fixture `run_subject`."""

RENAME_TO_ITSELF = """
put("file", b"content")
fs.rename_file(uri("file"), uri("file"))
expect(get("file"), b"content")
"""
