"""The tests; fixtures live in `tests.fixtures`, loopback servers in `tests.emulators`."""
