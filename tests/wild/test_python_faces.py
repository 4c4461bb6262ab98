"""What people use: pandas, pyarrow and fsspec on real plugins, also in another process."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.fixtures.matrices import sampled

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


@pytest.mark.parametrize("object_store", sampled(["s3", "az", "gs", "oss"], ["az"]), indirect=True)
def test_pandas_and_pyarrow_and_fsspec(object_store, run_subject):
    run_subject(
        object_store,
        """
        import fsspec, pandas, pyarrow, pyarrow.parquet
        scheme = base.partition("://")[0]
        mtf.fsspec.register(service, clobber=True)

        frame = pandas.DataFrame({"number": range(1000), "text": [f"n{i}" for i in range(1000)]})
        frame.to_csv(uri("frame.csv"), index=False)
        pandas.testing.assert_frame_equal(pandas.read_csv(uri("frame.csv")), frame)

        table = pyarrow.Table.from_pandas(frame)
        files = fsspec.filesystem(scheme)
        pyarrow.parquet.write_table(table, uri("table.parquet"), filesystem=files)
        part = pyarrow.parquet.read_table(
            uri("table.parquet"), filesystem=files, columns=["number"]
        )
        expect(part.column("number").to_pylist(), list(range(1000)))
        # By the URI alone pandas would ask pyarrow for its own S3 and GCS.
        again = pandas.read_parquet(uri("table.parquet"), filesystem=files)
        expect(again.equals(frame), True)

        with fsspec.open(uri("line"), "wb") as file:
            file.write(b"one line")
        with fsspec.open(uri("line"), "rb") as file:
            file.seek(4)
            expect(file.read(), b"line")
        names = sorted(path.rpartition("/")[2] for path in files.ls(base, detail=False))
        expect(names, ["frame.csv", "line", "table.parquet"])
        expect_error(FileNotFoundError, pandas.read_csv, uri("missing.csv"))
        """,
        folder="faces",
    )


def test_pandas_reads_from_the_web(http_store, run_subject):
    (http_store.folder / "frame.csv").write_text("a,b\n1,2\n3,4\n")
    run_subject(
        http_store,
        """
        import fsspec, pandas
        mtf.fsspec.register(service, clobber=True)
        with fsspec.open(uri("frame.csv")) as file:
            expect(pandas.read_csv(file)["b"].tolist(), [2, 4])
        expect_error(FileNotFoundError, fsspec.open(uri("missing")).open)
        """,
    )


_SPAWNING = """
    import multiprocessing, os, sys
    import modular_tf as mtf

    def work(files, uri):
        import pandas, pyarrow.parquet
        with files.open(uri + ".csv") as file:
            total = int(pandas.read_csv(file)["a"].sum())
        table = pyarrow.parquet.read_table(uri + ".parquet", filesystem=files)
        with files.open(uri + f".{os.getpid()}", "wb") as file:
            file.write(b"from the child")
        return os.getpid(), total, table.num_rows

    if __name__ == "__main__":
        import fsspec, pandas
        with mtf.PluginService(plugin_paths=[os.environ["WILD_PLUGIN"]]) as service:
            service.load()
            mtf.fsspec.register(service, clobber=True)
            uri = os.environ["WILD_BASE"] + "/frame"
            files = fsspec.filesystem(uri.partition("://")[0])
            frame = pandas.DataFrame({"a": [1, 2, 3]})
            with files.open(uri + ".csv", "w") as file:
                frame.to_csv(file)
            with files.open(uri + ".parquet", "wb") as file:
                frame.to_parquet(file)
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                results = pool.starmap(work, [(files, uri)] * 4)
                pool.close()
                pool.join()
            assert {result[1:] for result in results} == {(6, 3)}, results
            for pid in {result[0] for result in results}:
                assert pid != os.getpid()
                assert files.cat_file(uri + f".{pid}") == b"from the child"
    """


def test_a_spawned_process_gets_the_filesystem_by_pickle(
    s3_store, run_python, wild_environment, tmp_path
):
    script = tmp_path / "spawning.py"
    script.write_text(dedent(_SPAWNING))
    run_python(script, env=wild_environment(s3_store, "spawn"))
