"""Several accounts of one store in one process: instances of the published s3 plugin."""

from __future__ import annotations

import json

import pytest

from tests.emulators.conversation import ask

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_OWNERS = "mine=AKIAMINE,theirs=AKIATHEIRS"


@pytest.fixture
def two_accounts(distant_s3):
    """Return a store with two buckets, each of which another access key owns."""
    for bucket in ("mine", "theirs"):
        ask("PUT", f"{distant_s3.endpoint}/{bucket}")
    distant_s3.set(owners=_OWNERS)
    yield distant_s3
    distant_s3.set(owners="", refuse="")


_PREPARE = """
    import fsspec, json, pickle, sys
    MINE, THEIRS = (
        {"key": f"AKIA{name}", "secret": f"hush-{name}"} for name in ("MINE", "THEIRS")
    )
    assert mtf.fsspec.register(service, clobber=True, schemes=["s3"]).taken == ("s3",)
"""


def test_two_accounts_in_one_pandas_program(two_accounts, run_subject):
    code = f"""{_PREPARE}
    import pandas as pd
    frames = {{"mine": pd.DataFrame({{"n": [1, 2]}}), "theirs": pd.DataFrame({{"n": [3]}})}}
    for (bucket, frame), account in zip(frames.items(), (MINE, THEIRS)):
        frame.to_csv(f"s3://{{bucket}}/x.csv", index=False, storage_options=account)
    for (bucket, frame), account in zip(frames.items(), (MINE, THEIRS)):
        found = pd.read_csv(f"s3://{{bucket}}/x.csv", storage_options=account)
        pd.testing.assert_frame_equal(found, frame)
    try:
        pd.read_csv("s3://theirs/x.csv", storage_options=MINE)
    except PermissionError as error:
        print(error)
    else:
        raise AssertionError("read with the wrong key")
    """
    output = run_subject(two_accounts, code).stdout
    assert "signed by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in output
    assert "hush" not in output
    assert "AKIA" not in output


def test_a_named_instance_has_its_own_endpoint(two_accounts, run_subject):
    """Also where the process's own endpoint is dead, which is found out by asking the network."""
    store = two_accounts
    code = """
    import json, sys
    archive = service.instance("s3", name="archive", environment=json.loads(sys.argv[1]))
    with archive.new_writable_file("s3://fixture/of-instance") as file:
        file.append(b"1")
    expect(archive.get_file_size("s3://fixture/of-instance"), 1)
    error = expect_error(errors.UnavailableError, fs.path_exists, uri("x"))
    expect("127.0.0.1:9" in str(error), True)
    error = expect_error(errors.PermissionDeniedError, archive.path_exists, "s3://mine/x")
    print(error)
    """
    environment = {
        "S3_ENDPOINT": store.endpoint,
        "AWS_ACCESS_KEY_ID": "AKIAOTHER",
        "AWS_SECRET_ACCESS_KEY": "hush",
    }
    dead = {"S3_ENDPOINT": "http://127.0.0.1:9"}
    output = run_subject(store, code, json.dumps(environment), env=dead).stdout
    assert store.endpoint.removeprefix("http://") in output
    assert "hush" not in output


@pytest.mark.parametrize("first_contact", ["new", "never"])
def test_a_store_needs_no_more_than_its_worker_has(two_accounts, run_subject, first_contact):
    """With what was found when it was tried, rights are taken before it is mapped; else after."""
    code = """
    archive = service.instance("s3", name="archive", environment={})
    with archive.new_writable_file(uri("limited")) as file:
        file.append(bytes(6 << 20))
    expect(len(archive.read_file(uri("limited"))), 6 << 20)
    archive.delete_file(uri("limited"))
    worker, = service.workers()
    expect("named files only" in worker.limits, True)
    expect("no network" in worker.limits, False)
    """
    run_subject(two_accounts, code, env={"MODULAR_TF_FIRST_CONTACT": first_contact})
