"""An interrupt in the middle of closing a watch, at each step of it."""

from __future__ import annotations


def test_the_next_close_ends_the_watch(run_forked, tmp_path):
    run_forked(
        """
        import sys
        from tests.stress.moments import InterruptError, MomentOfStep
        from modular_tf.service.service import PluginService

        def interrupt():
            raise InterruptError

        step, is_met = 0, True
        while is_met:
            step += 1
            service = PluginService(plugin_paths=[sys.argv[1]], bundled=False)
            watch = service.watch()
            is_met = False
            try:
                with MomentOfStep(interrupt, step):
                    watch.close()
            except InterruptError:
                is_met = True
            service.close()  # waits for the watch
            assert watch.closed
        assert step > 5, step
        """,
        str(tmp_path),
    )
