"""The stores that others wrote are there, empty, and accept what the plugins are told to use."""

from __future__ import annotations

import pytest

from tests.fixtures.emulators import NAME

pytestmark = pytest.mark.emulator


def test_s3_keeps_an_object(s3_store):
    import boto3

    environment = s3_store.environment
    client = boto3.client(
        "s3",
        endpoint_url=environment["S3_ENDPOINT"],
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    client.put_object(Bucket=NAME, Key="kept", Body=b"content")
    with client.get_object(Bucket=NAME, Key="kept", Range="bytes=1-3")["Body"] as body:
        assert body.read() == b"ont"
    client.close()


def test_azure_keeps_a_blob(azure_store):
    from azure.storage.blob import ContainerClient

    environment = azure_store.environment
    with ContainerClient(
        environment["TF_AZURE_STORAGE_BLOB_ENDPOINT"],
        NAME,
        credential=environment["TF_AZURE_STORAGE_KEY"],
    ) as container:
        container.upload_blob("kept", b"content")
        assert container.download_blob("kept", offset=1, length=3).readall() == b"ont"


def test_uris_name_the_bucket(s3_store, azure_store, gcs_store):
    assert s3_store.uri("a/b") == f"s3://{NAME}/a/b"
    assert azure_store.uri("a/b") == f"az://devstoreaccount1/{NAME}/a/b"
    assert gcs_store.uri("a/b") == f"gs://{NAME}/a/b"
