"""The test suite; its fixtures live in `tests.fixtures`, its loopback servers in `tests.emulators`."""
