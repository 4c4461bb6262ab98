"""Where the kernel's events can be relied on."""

from __future__ import annotations

import pytest

from modular_tf.service.reload.watching.mounts import Mount, must_be_polled, read_mounts

MOUNTINFO = r"""
22 28 0:20 / /proc rw,nosuid shared:5 - proc proc rw
28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
90 28 0:45 / /srv/plug\040ins rw shared:40 master:2 - nfs4 server:/export rw,vers=4.2
91 28 0:46 / /home rw - fuse.sshfs someone@there: rw
92 91 0:47 / /home/local rw - tmpfs tmpfs rw
93 28 0:48 / /var/lib/box rw - overlay overlay rw,lowerdir=/a:/b
94 93 0:49 / /var/lib/box/share rw - 9p share rw
95 28 0:50 / /twice rw - cifs //there/share rw
96 95 0:51 / /twice rw - xfs /dev/vdb rw
nonsense
"""


@pytest.fixture
def mounts(tmp_path):
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTINFO)
    return read_mounts(str(file))


def test_mounts_are_read(mounts):
    assert mounts[2] == Mount("/srv/plug ins", "nfs4")
    assert len(mounts) == 9


@pytest.mark.parametrize(
    ("path", "polled"),
    [
        ("/", False),
        ("/srv", False),
        ("/srv/plug ins", True),
        ("/srv/plug ins/deeper/libx.so", True),
        ("/srv/plug insular", False),
        ("/home/me", True),
        ("/home/local/me", False),
        ("/var/lib/box/x", False),
        ("/var/lib/box/share/x", True),
        ("/twice/x", False),
    ],
)
def test_the_innermost_mount_decides(mounts, path, polled):
    assert must_be_polled(path, mounts) is polled


def test_a_link_to_a_network_file_system_leads_there(mounts, tmp_path):
    (tmp_path / "link").symlink_to("/srv/plug ins/x")

    assert must_be_polled(str(tmp_path / "link"), mounts)


def test_this_machine_tells_of_its_mounts():
    assert any(mount.point == "/" for mount in read_mounts())


def test_without_proc_nothing_is_polled(tmp_path):
    assert read_mounts(str(tmp_path / "missing")) == []
    assert not must_be_polled("/x", [])
