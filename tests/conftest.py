"""What holds for all tests."""

import hypothesis

# How long an example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile("gateway", deadline=None)
hypothesis.settings.load_profile("gateway")
