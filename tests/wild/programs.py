"""Programs that show a defect which more than one plugin has; see the fixture `run_subject`."""

RENAME_TO_ITSELF = """
import sys
put("file", b"content")
fs.rename_file(uri("file"), uri("file"))
expect(fs.path_exists(uri("file")), sys.argv[1] == "kept")
if sys.argv[1] == "kept":
    expect(get("file"), b"content")
"""
