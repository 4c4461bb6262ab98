"""The process that watchers are forked from, where an interrupt comes before its owner keeps it."""


def test_what_nobody_closes_is_waited_for(run_forked):
    run_forked(
        """
        import os, subprocess, sys, warnings
        from modular_tf.processes.zygote_process import ZygoteProcess

        warnings.simplefilter("ignore", ResourceWarning)
        ZygoteProcess(command=lambda *_: [sys.executable, "-c", ""], environment=os.environ)
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            pass  # it ended before it was released, which has waited for it then
        subprocess.run(["true"], check=True)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            pass  # there is none
        else:
            raise AssertionError("a zombie is left")
        """
    )


def test_a_forked_child_does_not_keep_it_from_ending(run_forked):
    run_forked(
        """
        import os, signal
        from modular_tf.first_contact.finding import Limits
        from modular_tf.first_contact.trials import zygotes_of

        zygote = zygotes_of(Limits()).warm()
        child = os.fork()
        if child == 0:
            signal.pause()
        ended = zygote.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert ended == "ended with status 0", ended
        """
    )


def test_an_interrupt_at_any_step_of_a_start_leaves_neither_files_nor_processes(run_forked):
    run_forked(
        """
        import gc, os, sys, time, warnings
        from modular_tf.first_contact.finding import Limits
        from modular_tf.first_contact.trials import zygotes_of
        from tests.stress.moments import InterruptError, MomentOfStep

        def interrupt():
            raise InterruptError

        def start():
            zygotes = zygotes_of(Limits())
            zygotes.warm()
            zygotes.end()

        def left():
            with open(f"/proc/self/task/{os.getpid()}/children") as listed:
                children = listed.read().split()
            return len(os.listdir("/proc/self/fd")), any(map(runs, children))

        def runs(pid):
            try:
                with open(f"/proc/{pid}/stat") as stat:
                    return stat.read().rpartition(")")[2][1] != "Z"
            except OSError:  # it was waited for meanwhile
                return False

        warnings.simplefilter("ignore", ResourceWarning)  # dropping is what closes here
        sys.unraisablehook = lambda _: None  # of interrupts in finalizers
        start()
        all_of_it = MomentOfStep(interrupt, 10**9)
        with all_of_it:
            start()
        before = len(os.listdir("/proc/self/fd")), False
        met = 0
        for step in range(1, all_of_it.steps, 17):
            try:
                with MomentOfStep(interrupt, step):
                    start()
            except InterruptError:
                met += 1
            for _ in range(1000):  # what had begun comes to its end
                gc.collect()
                if (now := left()) == before:
                    break
                time.sleep(0.01)
            assert now == before, (step, now)
        assert met > 20, met
        """
    )
