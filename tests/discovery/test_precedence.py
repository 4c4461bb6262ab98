"""One file is one candidate, whichever ways lead to it; names are unique."""

import os

from modular_tf.discovery.candidate import Source, Twin
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.site_folder import install


def test_sources_are_asked_in_the_order_of_the_design():
    first = ["argument", "environment", "tf-environment", "config", "entry-point"]
    then = ["tensorflow-plugins", "distribution", "user-directory", "bundled"]

    assert [str(source) for source in Source] == first + then


def test_a_file_that_every_source_finds_is_one_candidate(tmp_path):
    site = tmp_path / "site"
    library = site / "modular_spam/plugins/libspam.so"
    files = {"modular_spam/plugins/libspam.so": ElfBuilder().build()}
    install(site, "spam", files=files, entry_points="spam = modular_spam:plugins/libspam.so")
    (site / "tensorflow-plugins").symlink_to(library.parent)
    (tmp_path / "link.so").symlink_to(library)
    os.link(library, tmp_path / "hard.so")

    result = discover(
        SearchPaths(
            arguments=(str(tmp_path / "link.so"), str(tmp_path / "link.so")),
            environment={
                "MODULAR_TF_PLUGIN_PATH": str(tmp_path / "hard.so"),
                "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(library),
            },
            config_directories=(str(library.parent),),
            config_origin="the.toml",
            python_path=(str(site),),
            site_directories=(str(site),),
            user_directory=str(library.parent),
            package_directories=(str(site / "modular_spam"),),
        )
    )

    (candidate,) = result.candidates
    assert candidate.path == str(tmp_path / "link.so")
    assert candidate.real_path == str(library)
    assert candidate.source is Source.ARGUMENT
    assert candidate.distribution == "spam"
    assert candidate.name == "link"
    assert candidate.identity == (library.stat().st_dev, library.stat().st_ino)
    through_link = site / "tensorflow-plugins/libspam.so"
    assert candidate.twins == (
        Twin(str(tmp_path / "link.so"), Source.ARGUMENT, "argument"),
        Twin(str(tmp_path / "hard.so"), Source.ENVIRONMENT, "MODULAR_TF_PLUGIN_PATH"),
        Twin(str(library), Source.TF_ENVIRONMENT, "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"),
        Twin(str(library), Source.CONFIG, "the.toml"),
        Twin(str(library), Source.ENTRY_POINT, "spam 1.0: spam"),
        Twin(str(through_link), Source.TENSORFLOW_PLUGINS, str(through_link.parent)),
        Twin(str(library), Source.DISTRIBUTION, "spam 1.0"),
        Twin(str(library), Source.USER_DIRECTORY, str(library.parent)),
        Twin(str(library), Source.BUNDLED, "modular_tf"),
    )
    assert [place.source for place in result.searched if place.hits] == [
        Source.ARGUMENT,
        *Source,
    ]
