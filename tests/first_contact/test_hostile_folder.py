"""Nothing in a folder of hostile libraries takes the application down, and each is explained."""

import json

from tests.first_contact.conftest import processes_with
from tests.first_contact.hostile_folder import fill

# The application: lists the folder, uses what is good in it, and lists it as the command does.
SERVE = """
    import json, os, signal, sys
    import modular_tf as mtf
    from modular_tf.cli.main import run
    before = signal.getsignal(signal.SIGINT), sorted(os.listdir("/proc/self/fd"))
    with mtf.PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
        records = {}
        for record in service.load().plugins:
            reason = record.reason
            records[record.name] = [record.state.value, *(reason and [reason.rule, reason.message]
                                                          or [None, None])]
        for scheme in ("good0", "good1"):
            filesystem = service.filesystem(scheme)
            with filesystem.new_writable_file(f"{scheme}://host/file") as file:
                file.append(b"works")
            assert filesystem.get_file_size(f"{scheme}://host/file") == 5
        devices = [device.name for device in service.devices("GOOD")]
        assert service.device("GOOD:1").hardware_name == "Fixture 1000"
    with open("/proc/self/maps") as maps:
        mapped = sorted({line.split("/lib")[-1].strip() for line in maps if sys.argv[1] in line})
    try:
        left = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        left = None
    assert signal.getsignal(signal.SIGINT) is before[0]
    print(json.dumps([records, devices, mapped, left]), flush=True)
    run(["--plugin-dir", sys.argv[1], "--no-bundled", "--json", "list"])
    sys.stdout.flush()
    os._exit(0)  # what chance has left of a damaged plugin's destructors is not the matter
"""
STATED_BOUND_S = 200  # on a machine that is busy with other tests; alone it takes a tenth


def test_the_application_runs_on_the_good_ones_serve_and_each_bad_one_is_explained(
    tmp_path, run_python
):
    folder = tmp_path / "hostile"
    folder.mkdir()
    libraries = fill(folder)
    bad = {library.rule for library in libraries if library.rule is not None}
    assert len(libraries) >= 50
    assert bad >= {f"LD-06{n}" for n in (0, 1, 2, 4, 6, 7, 8)}
    (tmp_path / "modular-tf.toml").write_text("first_contact_timeout_s = 3\n")
    homes = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "STATE", "DATA")}
    environment = {**homes, "MODULAR_TF_CONFIG": str(tmp_path / "modular-tf.toml"), "LC_ALL": "C"}

    child = run_python(SERVE, folder, env=environment, timeout=STATED_BOUND_S)

    served, listed = child.stdout.splitlines()
    records, devices, mapped, left = json.loads(served)
    plugins = {plugin["name"]: plugin for plugin in json.loads(listed)["plugins"]}
    assert devices == ["GOOD:0", "GOOD:1"]
    assert {records[name][0] for name in ("good_0", "good_1", "good_device")} == {"loaded"}
    assert misjudged(libraries, records) == {}
    quarantined = {name for name, record in records.items() if record[0] == "quarantined"}
    assert {name.removesuffix(".so") for name in mapped} & quarantined == set()
    assert left is None
    assert processes_with(folder) == []

    reasons = {name: plugin["reason"] or {} for name, plugin in plugins.items()}
    assert misjudged(libraries, {
        name: [plugin["state"], reasons[name].get("rule"), reasons[name].get("message")]
        for name, plugin in plugins.items()
    }) == {}  # fmt: skip
    assert plugins["good_0"]["schemes"] == ["good0"]
    assert plugins["good_device"]["device_types"] == ["GOOD"]
    assert all(reasons[name]["remedy"] for name in quarantined)


def misjudged(libraries, records):
    """Return the libraries of which something else is said than must be."""
    return {
        library.name: records.get(library.name)
        for library in libraries
        if library.name not in records
        or records[library.name][0] not in library.states
        or (library.rule is not None and records[library.name][1] != library.rule)
        or (records[library.name][0] != "loaded" and not records[library.name][2])
    }
