"""The conformance kit, and the plugins that it must find wanting."""
