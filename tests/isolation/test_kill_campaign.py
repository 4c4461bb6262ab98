"""Workers are killed while threads read and write; `scripts/kill_workers` does it for longer."""

from __future__ import annotations


def test_no_byte_is_wrong_or_lost(run_forked, tmp_path):
    child = run_forked(  # of its own, since the campaign kills what the process has started
        """
        import sys
        from tests.isolation.kill_campaign import Campaign, Store
        stores = [Store(sys.argv[1], survives=True), Store("ram://kills", survives=False)]
        campaign = Campaign(stores, libraries=[], seconds=1.5, seed=1)
        campaign.run()
        assert campaign.problems == [], campaign.told()
        print(campaign.kills, campaign.operations)
        """,
        tmp_path,
    )

    kills, done = map(int, child.stdout.split())
    assert 0 < kills < done
