"""The registry against a model that is a list and one sort."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from modular_tf.device.registry import DeviceRegistry
from modular_tf.errors import AlreadyExistsError

TYPES = ("CPU", "GPU", "NPU")
PLATFORMS = ("A", "B", "C", "D", "E")


@dataclass(frozen=True, eq=False)
class Source:
    device_type: str
    platform: str
    priority: int
    count: int

    def device_count(self):
        return self.count


class RegistryModel(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.registry = DeviceRegistry()
        self.model = []  # (source, undo), in order of registration

    @rule(
        device_type=st.sampled_from(TYPES),
        platform=st.sampled_from(PLATFORMS),
        priority=st.integers(0, 3),
        count=st.integers(0, 3),
    )
    def register(self, device_type, platform, priority, count):
        source = Source(device_type, platform, priority, count)
        taken = any(entry.platform == platform for entry, _ in self.model)
        try:
            undo = self.registry.register(source, plugin=platform.lower())
        except AlreadyExistsError:
            assert taken
        else:
            assert not taken
            self.model.append((source, undo))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def unregister(self, data):
        index = data.draw(st.integers(0, len(self.model) - 1))
        _, undo = self.model.pop(index)
        undo()
        undo()  # which does nothing

    @invariant()
    def serves_as_the_model_says(self):
        sources = [source for source, _ in self.model]
        winners = [
            source
            for source in sources
            if source
            is max(
                (other for other in sources if other.device_type == source.device_type),
                key=lambda other: other.priority,  # max keeps the first of equal ones
            )
        ]
        winners.sort(key=lambda source: source.device_type != "CPU")
        expected = [
            (f"{source.device_type}:{number}", source.platform)
            for source in winners
            for number in range(source.count)
        ]
        found = [(device.name, device.platform) for device in self.registry.devices()]
        assert found == expected


TestRegistryModel = RegistryModel.TestCase
TestRegistryModel.settings = settings(max_examples=25)
