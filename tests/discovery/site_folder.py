"""Folders that look like site-packages, with distributions made of a few files."""


def install(site, name, *, version="1.0", files=None, entry_points=None, record=None):
    """Put a distribution into `site` as pip does and return its metadata directory.

    Args:
        site: The folder.
        name: Its name, as in the metadata directory.
        version: Its version.
        files: Contents by relative path.
        entry_points: What is below the heading of our group.
        record: The RECORD, in place of the right one.
    """
    metadata = site / f"{name}-{version}.dist-info"
    metadata.mkdir(parents=True)
    lines = [f"{metadata.name}/RECORD,,"]
    for path, content in (files or {}).items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        quoted = '"' + path.replace('"', '""') + '"' if "," in path or '"' in path else path
        lines.append(f"{quoted},sha256=x,{len(content)}")
    (metadata / "RECORD").write_bytes(record if record is not None else "\n".join(lines).encode())
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if entry_points is not None:
        (metadata / "entry_points.txt").write_text(f"[modular_tf.plugins]\n{entry_points}\n")
    return metadata
